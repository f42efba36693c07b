package interop

// gapKey names a scenario that a server cannot pass.
type gapKey struct {
	on       subject
	scenario string
}

// gap says why, and which checks fail. Without any the suite checks nothing.
type gap struct {
	why   string
	fails []string
}

const (
	fixedTool      = "calls a tool of the suite's own, by its name"
	fixedAddress   = "reads a resource of the suite's own, by its address"
	noPrompts      = "wants a prompt; `codex-mcp` has none, and its capabilities say so"
	noSubscription = "subscribes to a resource of the suite's own; the capabilities of `codex-mcp` say that it has no subscriptions"
	skips          = "the suite skips it itself"
)

// gaps are the scenarios that cannot pass. The test fails if another check fails, or if
// one of these passes.
var gaps = map[gapKey]gap{
	{itself, "server-stateless"}:                              {fixedTool, []string{"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400", "sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability"}},
	{itself, "completion-complete"}:                           {noPrompts, []string{"completion-complete"}},
	{itself, "tools-call-image"}:                              {fixedTool, []string{"tools-call-image"}},
	{itself, "tools-call-audio"}:                              {fixedTool, []string{"tools-call-audio"}},
	{itself, "tools-call-embedded-resource"}:                  {fixedTool, []string{"tools-call-embedded-resource"}},
	{itself, "tools-call-mixed-content"}:                      {fixedTool, []string{"tools-call-mixed-content"}},
	{itself, "tools-call-with-logging"}:                       {fixedTool, []string{"tools-call-with-logging"}},
	{itself, "tools-call-with-progress"}:                      {fixedTool, []string{"tools-call-with-progress"}},
	{itself, "tools-call-sampling"}:                           {fixedTool, []string{"tools-call-sampling"}},
	{itself, "tools-call-elicitation"}:                        {fixedTool, []string{"tools-call-elicitation"}},
	{itself, "json-schema-2020-12"}:                           {fixedTool, []string{"json-schema-2020-12-tool-found"}},
	{itself, "elicitation-sep1034-defaults"}:                  {fixedTool, []string{"elicitation-sep1034-general"}},
	{itself, "server-sse-polling"}:                            {fixedTool, nil},
	{itself, "elicitation-sep1330-enums"}:                     {fixedTool, []string{"elicitation-sep1330-general"}},
	{itself, "resources-read-text"}:                           {fixedAddress, []string{"resources-read-text"}},
	{itself, "resources-read-binary"}:                         {fixedAddress, []string{"resources-read-binary"}},
	{itself, "resources-templates-read"}:                      {fixedAddress, []string{"resources-templates-read"}},
	{itself, "resources-subscribe"}:                           {noSubscription, []string{"resources-subscribe"}},
	{itself, "resources-unsubscribe"}:                         {noSubscription, []string{"resources-unsubscribe"}},
	{itself, "prompts-list"}:                                  {noPrompts, []string{"prompts-list"}},
	{itself, "prompts-get-simple"}:                            {noPrompts, []string{"prompts-get-simple"}},
	{itself, "prompts-get-with-args"}:                         {noPrompts, []string{"prompts-get-with-args"}},
	{itself, "prompts-get-embedded-resource"}:                 {noPrompts, []string{"prompts-get-embedded-resource"}},
	{itself, "prompts-get-with-image"}:                        {noPrompts, []string{"prompts-get-with-image"}},
	{itself, "caching"}:                                       {noPrompts, []string{"sep-2549-prompts-list-caching-hints"}},
	{itself, "tasks-lifecycle"}:                               {fixedTool, []string{"sep-2663-cancel-ack-empty-result", "sep-2663-result-type-task-on-create", "sep-2663-tasks-get-status-completed", "sep-2663-tasks-get-status-failed", "sep-2663-tasks-get-status-working", "sep-2663-tool-error-uses-completed-status", "tasks-cancel-terminal-idempotent-ack", "tasks-sync-tool-call"}},
	{itself, "tasks-capability-negotiation"}:                  {fixedTool, []string{"sep-2663-server-rejects-undeclared-client", "tasks-per-request-meta-opt-in"}},
	{itself, "tasks-wire-fields"}:                             {fixedTool, []string{"tasks-no-early-ttl-expiry", "tasks-no-related-task-meta-on-inlined-result", "tasks-wire-field-renames"}},
	{itself, "tasks-request-state-removal"}:                   {fixedTool, []string{"tasks-request-state-removal-setup"}},
	{itself, "tasks-mrtr-input"}:                              {fixedTool, []string{"sep-2663-tasks-get-status-input-required", "tasks-mrtr-partial-fulfillment", "tasks-mrtr-tasks-update-resumes"}},
	{itself, "tasks-request-headers"}:                         {fixedTool, []string{"sep-2663-routing-headers-accepted-on-tasks-get", "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get", "tasks-headers-tolerate-mcp-method-on-tools-call"}},
	{itself, "tasks-dispatch-and-envelope"}:                   {fixedTool, []string{"sep-2663-durable-create-strong-consistency", "sep-2663-legacy-task-param-ignored", "tasks-immediate-result-shortcut", "tasks-result-type-complete-on-non-task-responses", "tasks-server-directed-creation-no-hint"}},
	{itself, "tasks-status-notifications"}:                    {skips, nil},
	{itself, "tasks-required-task-error"}:                     {fixedTool, []string{"sep-2663-server-returns-missing-capability-when-required"}},
	{itself, "tasks-mrtr-composition"}:                        {fixedTool, []string{"sep-2663-mrtr-synchronous-before-task-creation"}},
	{itself, "input-required-result-basic-elicitation"}:       {fixedTool, []string{"sep-2322-elicitation-incomplete"}},
	{itself, "input-required-result-basic-sampling"}:          {fixedTool, []string{"sep-2322-sampling-incomplete"}},
	{itself, "input-required-result-basic-list-roots"}:        {fixedTool, []string{"sep-2322-list-roots-incomplete"}},
	{itself, "input-required-result-request-state"}:           {fixedTool, []string{"sep-2322-request-state-incomplete"}},
	{itself, "input-required-result-multiple-input-requests"}: {fixedTool, []string{"sep-2322-multiple-inputs-incomplete"}},
	{itself, "input-required-result-multi-round"}:             {fixedTool, []string{"sep-2322-multi-round-r1"}},
	{itself, "input-required-result-missing-input-response"}:  {fixedTool, []string{"sep-2322-missing-response-rerequests"}},
	{itself, "input-required-result-non-tool-request"}:        {noPrompts, []string{"sep-2322-non-tool-incomplete"}},
	{itself, "input-required-result-result-type"}:             {fixedTool, []string{"sep-2322-result-type-included"}},
	{itself, "input-required-result-tampered-state"}:          {fixedTool, []string{"sep-2322-reject-tampered-state"}},
	{itself, "input-required-result-capability-check"}:        {fixedTool, []string{"sep-2322-respect-client-capabilities"}},
	{itself, "input-required-result-ignore-extra-params"}:     {fixedTool, []string{"sep-2322-ignore-unexpected-params"}},
	{featured, "tasks-status-notifications"}:                  {skips, nil},
}
