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

// unknownCall is the gap of a scenario that called a tool which codex-mcp does not have.
var unknownCall = gap{kind: foreign, why: fixedTool}

// gaps are the other scenarios that cannot pass, or not whole. The test fails if another check
// fails or is skipped, or if one of these passes.
var gaps = map[gapKey]gap{
	{itself, "server-stateless"}:                       {kind: foreign, why: fixedTool, checks: []string{"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400", "sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability"}, rest: true},
	{itself, "json-schema-2020-12"}:                    {kind: foreign, why: fixedTool, checks: []string{"json-schema-2020-12-tool-found"}},
	{itself, "completion-complete"}:                    {kind: foreign, why: noPrompts, checks: []string{"completion-complete"}},
	{itself, "resources-read-text"}:                    {kind: foreign, why: fixedAddress, checks: []string{"resources-read-text"}},
	{itself, "resources-read-binary"}:                  {kind: foreign, why: fixedAddress, checks: []string{"resources-read-binary"}},
	{itself, "resources-templates-read"}:               {kind: foreign, why: fixedAddress, checks: []string{"resources-templates-read"}},
	{itself, "resources-subscribe"}:                    {kind: foreign, why: noSubscription, checks: []string{"resources-subscribe"}},
	{itself, "resources-unsubscribe"}:                  {kind: foreign, why: noSubscription, checks: []string{"resources-unsubscribe"}},
	{itself, "resources-list"}:                         {kind: foreign, why: noResources, checks: []string{"resources-list"}},
	{itself, "sep-2164-resource-not-found"}:            {kind: foreign, why: noResources, checks: []string{"sep-2164-data-uri", "sep-2164-error-code"}},
	{itself, "sep-2640-skills-directory"}:              {kind: foreign, why: noSkills},
	{itself, "sep-2640-skills-enumeration"}:            {kind: foreign, why: noSkills},
	{itself, "sep-2640-skills-manifest"}:               {kind: foreign, why: noSkills},
	{itself, "prompts-list"}:                           {kind: foreign, why: noPrompts, checks: []string{"prompts-list"}},
	{itself, "prompts-get-simple"}:                     {kind: foreign, why: noPrompts, checks: []string{"prompts-get-simple"}},
	{itself, "prompts-get-with-args"}:                  {kind: foreign, why: noPrompts, checks: []string{"prompts-get-with-args"}},
	{itself, "prompts-get-embedded-resource"}:          {kind: foreign, why: noPrompts, checks: []string{"prompts-get-embedded-resource"}},
	{itself, "prompts-get-with-image"}:                 {kind: foreign, why: noPrompts, checks: []string{"prompts-get-with-image"}},
	{itself, "caching"}:                                {kind: foreign, why: noListed, checks: []string{"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints", "sep-2549-resources-templates-list-caching-hints"}, rest: true},
	{itself, "tasks-status-notifications"}:             {kind: skipped, why: skips, checks: []string{"tasks-status-notifications"}},
	{itself, "input-required-result-non-tool-request"}: {kind: foreign, why: noPrompts, checks: []string{"sep-2322-non-tool-incomplete"}},
	{featured, "tasks-status-notifications"}:           {kind: skipped, why: skips, checks: []string{"tasks-status-notifications"}},

	{caller, "auth/*"}:                             {kind: foreign, why: noOAuth, all: true},
	{caller, "sep-2640-client-no-prefetch"}:        {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-digest"}:      {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-size"}:        {kind: foreign, why: noSkillsCalled},
	{caller, "sep-2640-client-verify-frontmatter"}: {kind: foreign, why: noSkillsCalled},
	{caller, "http-standard-headers"}:              {kind: skipped, why: noHandshake, checks: []string{"sep-2243-client-includes-standard-headers", "sep-2243-client-includes-standard-headers"}},
	{caller, "request-metadata"}:                   {kind: skipped, why: declaresLess, checks: []string{"sep-2575-client-declares-roots-capability", "sep-2575-client-declares-sampling-capability"}},
}
