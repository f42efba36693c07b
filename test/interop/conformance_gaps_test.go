package interop

import "strings"

// gapKey names a scenario that something cannot pass.
type gapKey struct {
	on       subject
	scenario string
}

// gap says why, as what it counts, and which checks are skipped or fail. Without any the
// suite checks nothing.
type gap struct {
	kind   kind
	why    string
	checks []string
	rest   bool // the other checks are about the server, and pass
	all    bool // whatever the checks find
}

// gapOf returns the gap of a scenario, which may be that of its group, with its key.
func gapOf(on subject, scenario string) (gapKey, gap) {
	key := gapKey{on, groupOf(scenario)}
	return key, gaps[key]
}

// groupOf returns the group in front of a slash with /*, or the scenario itself.
func groupOf(scenario string) string {
	if group, _, ok := strings.Cut(scenario, "/"); ok {
		return group + "/*"
	}
	return scenario
}

const (
	fixedTool      = "calls a tool of the suite's own, by its name"
	fixedAddress   = "reads a resource of the suite's own, by its address"
	noPrompts      = "wants a prompt; `codex-mcp` has none, and its capabilities say so"
	noResources    = "wants resources; `codex-mcp` has none, and its capabilities say so"
	noListed       = "wants prompts and resources; `codex-mcp` has neither, and its capabilities say so"
	noSkills       = "tests skills; `codex-mcp` has none, and its capabilities say so"
	noSubscription = "subscribes to a resource of the suite's own; the capabilities of `codex-mcp` say that it has no subscriptions"
	skips          = "the suite skips it itself: its check of notifications about tasks is of an older draft"
	noOAuth        = "tests a client's OAuth; ours has a token"
	noSkillsCalled = "tests a client that loads skills; ours loads none"
	noHandshake    = "a client of 2026-07-28 sends no `initialize`, so its headers are not tested"
	declaresLess   = "tests the form of a capability that is declared; the client declares neither roots nor sampling"
)

// gaps are the scenarios that cannot pass, or not whole. The test fails if another check
// fails or is skipped, or if one of these passes.
var gaps = map[gapKey]gap{
	{itself, "server-stateless"}:                              {kind: foreign, why: fixedTool, checks: []string{"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400", "sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability"}, rest: true},
	{itself, "completion-complete"}:                           {kind: foreign, why: noPrompts, checks: []string{"completion-complete"}},
	{itself, "tools-call-image"}:                              {kind: foreign, why: fixedTool, checks: []string{"tools-call-image"}},
	{itself, "tools-call-audio"}:                              {kind: foreign, why: fixedTool, checks: []string{"tools-call-audio"}},
	{itself, "tools-call-embedded-resource"}:                  {kind: foreign, why: fixedTool, checks: []string{"tools-call-embedded-resource"}},
	{itself, "tools-call-mixed-content"}:                      {kind: foreign, why: fixedTool, checks: []string{"tools-call-mixed-content"}},
	{itself, "tools-call-with-logging"}:                       {kind: foreign, why: fixedTool, checks: []string{"tools-call-with-logging"}},
	{itself, "tools-call-with-progress"}:                      {kind: foreign, why: fixedTool, checks: []string{"tools-call-with-progress"}},
	{itself, "tools-call-sampling"}:                           {kind: foreign, why: fixedTool, checks: []string{"tools-call-sampling"}},
	{itself, "tools-call-elicitation"}:                        {kind: foreign, why: fixedTool, checks: []string{"tools-call-elicitation"}},
	{itself, "json-schema-2020-12"}:                           {kind: foreign, why: fixedTool, checks: []string{"json-schema-2020-12-tool-found"}},
	{itself, "elicitation-sep1034-defaults"}:                  {kind: foreign, why: fixedTool, checks: []string{"elicitation-sep1034-general"}},
	{itself, "server-sse-polling"}:                            {kind: foreign, why: fixedTool},
	{itself, "elicitation-sep1330-enums"}:                     {kind: foreign, why: fixedTool, checks: []string{"elicitation-sep1330-general"}},
	{itself, "resources-read-text"}:                           {kind: foreign, why: fixedAddress, checks: []string{"resources-read-text"}},
	{itself, "resources-read-binary"}:                         {kind: foreign, why: fixedAddress, checks: []string{"resources-read-binary"}},
	{itself, "resources-templates-read"}:                      {kind: foreign, why: fixedAddress, checks: []string{"resources-templates-read"}},
	{itself, "resources-subscribe"}:                           {kind: foreign, why: noSubscription, checks: []string{"resources-subscribe"}},
	{itself, "resources-unsubscribe"}:                         {kind: foreign, why: noSubscription, checks: []string{"resources-unsubscribe"}},
	{itself, "resources-list"}:                                {kind: foreign, why: noResources, checks: []string{"resources-list"}},
	{itself, "sep-2164-resource-not-found"}:                   {kind: foreign, why: noResources, checks: []string{"sep-2164-data-uri", "sep-2164-error-code"}},
	{itself, "sep-2640-skills-directory"}:                     {kind: foreign, why: noSkills},
	{itself, "sep-2640-skills-enumeration"}:                   {kind: foreign, why: noSkills},
	{itself, "sep-2640-skills-manifest"}:                      {kind: foreign, why: noSkills},
	{itself, "prompts-list"}:                                  {kind: foreign, why: noPrompts, checks: []string{"prompts-list"}},
	{itself, "prompts-get-simple"}:                            {kind: foreign, why: noPrompts, checks: []string{"prompts-get-simple"}},
	{itself, "prompts-get-with-args"}:                         {kind: foreign, why: noPrompts, checks: []string{"prompts-get-with-args"}},
	{itself, "prompts-get-embedded-resource"}:                 {kind: foreign, why: noPrompts, checks: []string{"prompts-get-embedded-resource"}},
	{itself, "prompts-get-with-image"}:                        {kind: foreign, why: noPrompts, checks: []string{"prompts-get-with-image"}},
	{itself, "caching"}:                                       {kind: foreign, why: noListed, checks: []string{"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints", "sep-2549-resources-templates-list-caching-hints"}, rest: true},
	{itself, "tasks-lifecycle"}:                               {kind: foreign, why: fixedTool, checks: []string{"sep-2663-cancel-ack-empty-result", "sep-2663-result-type-task-on-create", "sep-2663-tasks-get-status-completed", "sep-2663-tasks-get-status-failed", "sep-2663-tasks-get-status-working", "sep-2663-tool-error-uses-completed-status", "tasks-cancel-terminal-idempotent-ack", "tasks-sync-tool-call"}},
	{itself, "tasks-capability-negotiation"}:                  {kind: foreign, why: fixedTool, checks: []string{"sep-2663-server-rejects-undeclared-client", "tasks-per-request-meta-opt-in"}},
	{itself, "tasks-wire-fields"}:                             {kind: foreign, why: fixedTool, checks: []string{"tasks-no-early-ttl-expiry", "tasks-no-related-task-meta-on-inlined-result", "tasks-wire-field-renames"}},
	{itself, "tasks-request-state-removal"}:                   {kind: foreign, why: fixedTool, checks: []string{"tasks-request-state-removal-setup"}},
	{itself, "tasks-mrtr-input"}:                              {kind: foreign, why: fixedTool, checks: []string{"sep-2663-tasks-get-status-input-required", "tasks-mrtr-partial-fulfillment", "tasks-mrtr-tasks-update-resumes"}},
	{itself, "tasks-request-headers"}:                         {kind: foreign, why: fixedTool, checks: []string{"sep-2663-routing-headers-accepted-on-tasks-get", "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get", "tasks-headers-tolerate-mcp-method-on-tools-call"}},
	{itself, "tasks-dispatch-and-envelope"}:                   {kind: foreign, why: fixedTool, checks: []string{"sep-2663-durable-create-strong-consistency", "sep-2663-legacy-task-param-ignored", "tasks-immediate-result-shortcut", "tasks-result-type-complete-on-non-task-responses", "tasks-server-directed-creation-no-hint"}},
	{itself, "tasks-status-notifications"}:                    {kind: skipped, why: skips, checks: []string{"tasks-status-notifications"}},
	{itself, "tasks-required-task-error"}:                     {kind: foreign, why: fixedTool, checks: []string{"sep-2663-server-returns-missing-capability-when-required"}},
	{itself, "tasks-mrtr-composition"}:                        {kind: foreign, why: fixedTool, checks: []string{"sep-2663-mrtr-synchronous-before-task-creation"}},
	{itself, "input-required-result-basic-elicitation"}:       {kind: foreign, why: fixedTool, checks: []string{"sep-2322-elicitation-incomplete"}},
	{itself, "input-required-result-basic-sampling"}:          {kind: foreign, why: fixedTool, checks: []string{"sep-2322-sampling-incomplete"}},
	{itself, "input-required-result-basic-list-roots"}:        {kind: foreign, why: fixedTool, checks: []string{"sep-2322-list-roots-incomplete"}},
	{itself, "input-required-result-request-state"}:           {kind: foreign, why: fixedTool, checks: []string{"sep-2322-request-state-incomplete"}},
	{itself, "input-required-result-multiple-input-requests"}: {kind: foreign, why: fixedTool, checks: []string{"sep-2322-multiple-inputs-incomplete"}},
	{itself, "input-required-result-multi-round"}:             {kind: foreign, why: fixedTool, checks: []string{"sep-2322-multi-round-r1"}},
	{itself, "input-required-result-missing-input-response"}:  {kind: foreign, why: fixedTool, checks: []string{"sep-2322-missing-response-rerequests"}},
	{itself, "input-required-result-non-tool-request"}:        {kind: foreign, why: noPrompts, checks: []string{"sep-2322-non-tool-incomplete"}},
	{itself, "input-required-result-result-type"}:             {kind: foreign, why: fixedTool, checks: []string{"sep-2322-result-type-included"}},
	{itself, "input-required-result-tampered-state"}:          {kind: foreign, why: fixedTool, checks: []string{"sep-2322-reject-tampered-state"}},
	{itself, "input-required-result-capability-check"}:        {kind: foreign, why: fixedTool, checks: []string{"sep-2322-respect-client-capabilities"}},
	{itself, "input-required-result-ignore-extra-params"}:     {kind: foreign, why: fixedTool, checks: []string{"sep-2322-ignore-unexpected-params"}},
	{itself, "tools-call-simple-text"}:                        {kind: foreign, why: fixedTool, checks: []string{"tools-call-simple-text"}},
	{itself, "tools-call-error"}:                              {kind: foreign, why: fixedTool, checks: []string{"tools-call-error"}},
	{itself, "input-required-result-validate-input"}:          {kind: foreign, why: fixedTool},
	{featured, "tasks-status-notifications"}:                  {kind: skipped, why: skips, checks: []string{"tasks-status-notifications"}},

	{caller, "auth/*"}:                             {kind: foreign, why: noOAuth, all: true},
	{caller, "sep-2640-client-no-prefetch"}:        {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-digest"}:      {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-size"}:        {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-frontmatter"}: {kind: foreign, why: noSkillsCalled},
	{caller, "http-standard-headers"}:              {kind: skipped, why: noHandshake, checks: []string{"sep-2243-client-includes-standard-headers", "sep-2243-client-includes-standard-headers"}},
	{caller, "request-metadata"}:                   {kind: skipped, why: declaresLess, checks: []string{"sep-2575-client-declares-roots-capability", "sep-2575-client-declares-sampling-capability"}},
}
