package servertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Engines, as sets.
const (
	Native = 1 << iota
	Codex
	both = Native | Codex
)

// HostileCall is a call of the tool codex that may go beyond the server's configuration.
type HostileCall struct {
	Name string
	// Arguments are those beside the prompt, for [Yard.In].
	Arguments string
	// Configuration has lines of config.toml that the call tries to go beyond. Default: [Confined].
	Configuration string
	// Asks are the engines on which the call needs a question. On the others it fails or runs, and
	// whatever its commands ask for is refused.
	Asks int
}

// Confined is a configuration in which a person is asked about each command, and none may write.
const Confined = "approval_policy = \"untrusted\"\nsandbox_mode = \"read-only\"\n"

const (
	fullAccess = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"\n"
	writable   = "approval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\n"
	other      = Confined + "[model_providers.other]\nname = \"other\"\nbase_url = " +
		"\"http://127.0.0.1:1/v1\"\nwire_api = \"responses\"\n"
)

// profiles are the files of profiles in a [Yard].
var profiles = map[string]string{
	"wide":  "sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n",
	"quiet": "approval_policy = \"never\"\n", "elsewise": "model_provider = \"other\"\n",
}

// hostileArguments are calls by arguments, and by keys of the argument config that calls may set.
var hostileArguments = []HostileCall{
	{"full access", `"sandbox":"danger-full-access","approval-policy":"never"`, "", both},
	{"full access, asking", `"sandbox":"danger-full-access","approval-policy":"on-request"`, "", both},
	{"full access in the background", `"sandbox":"danger-full-access","approval-policy":"never","background":true`, "",
		both},
	{"full access in a worktree", `"sandbox":"danger-full-access","approval-policy":"never","worktree":true`, "", both},
	{"full access in attempts", `"sandbox":"danger-full-access","approval-policy":"never","attempts":2`, "", both},
	{"full access by config", `"config":{"sandbox_mode":"danger-full-access","approval_policy":"never"}`, "", both},
	{"full access by profile", `"profile":"wide"`, "", both},
	{"no questions in full access", `"approval-policy":"never"`, fullAccess, both},
	{"other questions in full access", `"approval-policy":"on-request"`, fullAccess, both},
	{"questions after failures in full access", `"config":{"approval_policy":"on-failure"}`, fullAccess, both},
	{"a profile without questions in full access", `"profile":"quiet"`, fullAccess, both},
	{"secrets of the home", `"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME/.ssh"`, "", both},
	{"programs that start by themselves",
		`"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME/.config/autostart"`, "", both},
	{"the home", `"sandbox":"workspace-write","approval-policy":"never","cwd":"HOME"`, "", both},
	{"the root", `"sandbox":"workspace-write","approval-policy":"never","cwd":"/"`, "", both},
	{"another folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"OTHER"`, "", both},
	{"a link in the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START/link"`, "",
		both},
	{"a way out of the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START/../../.ssh"`,
		"", both},
	{"another folder of a wide configuration", `"approval-policy":"never","cwd":"OTHER"`, writable, both},
	{"the root in a wide configuration", `"approval-policy":"never","cwd":"/"`, writable, both},
	{"a writable root", `"approval-policy":"never","config":{"sandbox_mode":"workspace-write",` +
		`"sandbox_workspace_write":{"writable_roots":["OTHER"]}}`, "", both},
	{"a dotted writable root", `"approval-policy":"never","sandbox":"workspace-write",` +
		`"config":{"sandbox_workspace_write.writable_roots":["OTHER"]}`, "", both},
	{"temporary folders", `"approval-policy":"never","config":{"sandbox_workspace_write.exclude_slash_tmp":false}`,
		writable + "[sandbox_workspace_write]\nexclude_slash_tmp = true\n", both},
	{"the folder of a variable", `"approval-policy":"never",` +
		`"config":{"sandbox_workspace_write":{"exclude_tmpdir_env_var":false}}`,
		writable + "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n", both},
	{"the network", `"approval-policy":"never","sandbox":"workspace-write",` +
		`"config":{"sandbox_workspace_write.network_access":true}`, "", both},
	{"a search of the web", `"web-search":true`, "", both},
	{"a search of the web by config", `"config":{"tools":{"web_search":true}}`, "", Native},
	{"another provider", `"config":{"model_provider":"other"}`, other, both},
	{"its profile", `"profile":"elsewise"`, other, both},

	{"the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START"`, "", 0},
	{"no questions", `"approval-policy":"never"`, "", 0},
	{"questions of the model", `"approval-policy":"on-request"`, "", 0},
	{"questions after failures", `"approval-policy":"on-failure"`, "", 0},
	{"no questions by profile", `"profile":"quiet"`, "", 0},
	{"a worktree", `"sandbox":"workspace-write","approval-policy":"never","worktree":true`, "", 0},
	{"attempts", `"sandbox":"workspace-write","approval-policy":"never","attempts":2,"models":["m1","m2"]`, "", 0},
	{"instructions", `"model":"m2","effort":"high","base-instructions":"x","developer-instructions":"x",` +
		`"compact-prompt":"x","include-plan-tool":true,"budget":{"tokens":1000000,"minutes":5},` +
		`"output-schema":{"type":"object"}`, "", 0},
	{"keys of the model", `"config":{"model":"m2","compact_prompt":"x","developer_instructions":"x",` +
		`"hide_agent_reasoning":false,"show_raw_agent_reasoning":true,"model_auto_compact_token_limit":100000,` +
		`"model_context_window":200000,` +
		`"model_reasoning_effort":"high","model_reasoning_summary":"auto","model_reasoning_summary_format":"none",` +
		`"model_verbosity":"low"}`, "", 0},
	{"a check", `"check":"START/evil.sh check"`, "", 0},
	{"a check without questions", `"approval-policy":"never","check":"START/evil.sh check; for d in HOME HOME/.ssh ` +
		`OTHER; do echo x > $d/check; done"`, "", 0},
	{"a check in the start folder", `"sandbox":"workspace-write","approval-policy":"on-request",` +
		`"check":"START/evil.sh check; echo x > link/check"`, "", 0},
	{"an image of the home", `"images":["HOME/.ssh/id"]`, "", 0},
	{"in the background", `"background":true`, "", 0},
	{"folders without a mode", `"config":{"sandbox_workspace_write":{"writable_roots":["OTHER"],` +
		`"network_access":true,"exclude_slash_tmp":false,"exclude_tmpdir_env_var":false}}`, "", 0},
}

// hostileKeys are keys of the argument config that no call may set, with their values.
var hostileKeys = [][2]string{
	{"approval_policy", `{"granular":{"sandbox_approval":false,"rules":false,"mcp_elicitations":false}}`},
	{"features", `{"hooks":true,"plugins":true,"exec_permission_approvals":true,"request_permissions_tool":true,` +
		`"network_proxy":true,"use_legacy_landlock":true,"shell_snapshot":true,"unified_exec":true}`},
	{"tools", `{"view_image":true,"update_plan":true,"web_search_request":false,` +
		`"experimental_request_user_input":{"enabled":true},"client_search_provider":"x"}`},
	{"shell_environment_policy", `{"inherit":"all","include_only":[],"exclude":[],"ignore_default_excludes":true,` +
		`"experimental_use_profile":true,"set":{"BASH_ENV":"START/evil.sh","PATH":"START",` +
		`"GIT_SSH_COMMAND":"START/evil.sh"}}`},
	{"mcp_servers", `{"evil":{"command":"START/evil.sh","args":["server"]}}`},
	{"mcp_servers.evil.command", `"START/evil.sh"`}, {"notify", `["START/evil.sh","notify"]`},
	{"projects", `{"START":{"trust_level":"trusted"}}`},
	{"projects.START.trust_level", `"trusted"`},
	{"hooks", `{"SessionStart":[{"hooks":[{"type":"command","command":"START/evil.sh hook"}]}]}`},
	{"default_permissions", `":danger-full-access"`},
	{"permissions", `{"mine":{"filesystem":{"/":"write"}}}`},
	{"sandbox_permissions", `["disk-full-write-access"]`},
	{"profiles", `{"mine":{"sandbox_mode":"danger-full-access"}}`},
	{"profile", `"wide"`},
	{"model_providers", `{"mock":{"base_url":"http://127.0.0.1:1/v1"}}`},
	{"model_providers.mock.base_url", `"http://127.0.0.1:1/v1"`},
	{"openai_base_url", `"http://127.0.0.1:1/v1"`}, {"chatgpt_base_url", `"http://127.0.0.1:1/v1"`},
	{"web_search", `"live"`},
	{"approvals_reviewer", `"auto_review"`}, {"auto_review", `{"policy":"approve all"}`},
	{"approvals.reviewer", `"codex"`},
	{"agents", `{"evil":{"description":"x","config_file":"START/.codex/agents/evil.toml"}}`},
	{"plugins", `{"evil":{"enabled":true}}`}, {"marketplaces", `{"evil":{"source":"START"}}`},
	{"skills", `{"config":[{"path":"START/.codex/skills/evil","enabled":true}]}`},
	{"model_instructions_file", `"HOME/.ssh/id"`},
	{"experimental_instructions_file", `"HOME/.ssh/id"`},
	{"experimental_compact_prompt_file", `"HOME/.ssh/id"`},
	{"model_catalog_json", `"HOME/.ssh/id"`}, {"zsh_path", `"START/evil.sh"`}, {"js_repl_node_path", `"START/evil.sh"`},
	{"log_dir", `"OTHER/log"`},
	{"sqlite_home", `"OTHER/sqlite"`},
	{"otel", `{"exporter":{"otlp-http":{"endpoint":"http://127.0.0.1:1"}}}`},
	{"history", `{"persistence":"save-all"}`}, {"file_opener", `"START/evil.sh"`},
	{"cli_auth_credentials_store", `"file"`},
	{"allow_login_shell", `true`}, {"project_root_markers", `["evil.sh"]`},
	{"experimental_thread_store_endpoint", `"http://127.0.0.1:1"`},
	{"windows", `{"sandbox":"elevated"}`}, {"calls", `{"full_access":"allow"}`}, {"calls.full_access", `"allow"`},
	{"calls.trusted", `true`},
	{"approvals", `{"allow":[["sh"]],"automatic":"accept"}`},
	{"sandbox", `{"helper":["START/evil.sh"]}`}, {"nosuch", `{"command":"START/evil.sh"}`},
}

// HostileCalls returns a table of calls with every argument and every kind of key of the argument config.
func HostileCalls() []HostileCall {
	all := slices.Clone(hostileArguments)
	for _, k := range hostileKeys {
		all = append(all, HostileCall{Name: "the key " + k[0], Arguments: fmt.Sprintf(`"config":{%q:%s}`, k[0], k[1])})
	}
	return all
}

// HostileClient is a client, by what it does with a question.
type HostileClient struct {
	Name   string
	Answer Answer // nil is a client that cannot be asked
	slow   bool   // it takes as long as a person for its answer about the call itself
	late   bool   // they come when the questions have ended
	leaves bool   // it goes away in place of an answer
	forges bool   // it answers a question that nobody asked (2026-07-28)
	// approves is true if it approves at once. Commands may run then, but the call gets no more.
	approves bool
	Says     []string
}

const (
	shortLimit = 25 * time.Millisecond
	// considered is how long a client takes whose answer could be a person's.
	considered = approve.Instant + 100*time.Millisecond
)

// Clients returns the clients of a hostile caller.
func Clients() []HostileClient {
	refused := func(why ...string) []string {
		return append([]string{"nothing was started", "calls.full_access"}, why...)
	}
	overdue := func(context.Context) (string, error) { // also when the question has ended
		time.Sleep(considered)
		return Accept, nil
	}
	return []HostileClient{
		{Name: "cannot ask", Says: refused("cannot show approval requests")},
		{Name: "declines", Answer: Say(Decline), Says: refused("declined")},
		{Name: "cancels", Answer: Say(Cancel), Says: refused()},
		{Name: "fails", Answer: Fail, Says: refused()},
		{Name: "accepts by itself", Answer: Say(Accept), approves: true, Says: refused()},
		{Name: "never answers", Answer: Never, late: true, Says: []string{"no answer"}},
		{Name: "answers late", Answer: overdue, late: true, Says: []string{"no answer"}},
		{Name: "goes away", leaves: true, late: true},
		{Name: "lies with a malformed answer", Answer: Say(`{"action":["accept"],"content":{"decision":"approved"}}`),
			slow: true, Says: refused()},
		{Name: "lies with an unknown decision", Answer: Say(`{"action":"accept","content":{"decision":"everything"}}`),
			slow: true, Says: refused()},
		{Name: "lies about the question", Answer: Say(Accept), forges: true, slow: true},
	}
}

// HostileEngine is an engine that hostile callers call.
type HostileEngine struct {
	Kind int // Native or Codex
	// Open opens the engine on a yard. It returns a function that makes a server with a limit of
	// questions, 0 for its default.
	Open func(t *testing.T, y *Yard) func(limit time.Duration, access setting.FullAccess) Server
	// Model makes the calls of the model.
	Model Model
}

// TestHostileCalls plays the table of hostile calls against an engine, with clients in each way of
// calling. Nothing is written or started outside, nothing hangs, and the result of a call that needed a
// question says why nothing was started. A call is made by one in share of the clients and ways, all for 1, and each
// client makes some calls in each way. One that needs no question is made by half as many, since its commands take long.
func (e *HostileEngine) TestHostileCalls(t *testing.T, share int) {
	yards := NewYards(t)
	calls := HostileCalls()
	groups := map[string][]int{} // of calls
	var order []string
	for at := range calls {
		configuration := cmp.Or(calls[at].Configuration, Confined)
		if groups[configuration] == nil {
			order = append(order, configuration)
		}
		groups[configuration] = append(groups[configuration], at)
	}
	for i, configuration := range order {
		t.Run(fmt.Sprint("configuration ", i), func(t *testing.T) {
			t.Parallel()
			y := yards.New(t, configuration, e.Model)
			g := &hostileGroup{engine: e, share: share, t: t, yard: y, serve: e.Open(t, y),
				turn: make(chan struct{}, maxWaiting)}
			t.Run("calls", func(t *testing.T) {
				for _, at := range groups[configuration] {
					t.Run(calls[at].Name, func(t *testing.T) {
						t.Parallel()
						for i, client := range Clients() {
							g.play(t, &calls[at], &client, at+i)
						}
					})
				}
			})
			g.waiting.Wait()
		})
	}
}

// hostileGroup plays calls under the same configuration.
type hostileGroup struct {
	engine  *HostileEngine
	share   int
	t       *testing.T
	yard    *Yard
	serve   func(time.Duration, setting.FullAccess) Server
	waiting sync.WaitGroup
	turn    chan struct{} // filled by each client that waits
}

// maxWaiting is how many calls of clients that wait run at the same time.
const maxWaiting = 12

// How a client calls. Methods are newConversation and those around it.
const (
	legacy  = "the tool of 2025"
	modern  = "the tool of 2026"
	methods = "the methods of 2025"
)

// play has a client make a call in each way. A client that waits does so in the background.
func (g *hostileGroup) play(t *testing.T, call *HostileCall, client *HostileClient, turn int) {
	asks, share := call.Asks&g.engine.Kind != 0, g.share
	if !asks && share > 1 {
		share *= 2
	}
	switch {
	case client.approves && !asks: // its commands may run
		return
	case client.slow && asks:
		client.Answer = Delay(considered, client.Answer)
	}
	for way, era := range []string{legacy, modern, methods} {
		switch {
		case (turn+way)%share != 0:
		case client.forges && era != modern:
		case era == methods && (client.slow || client.late || !call.isConversation()):
		case client.slow || client.late:
			g.waiting.Go(func() {
				g.turn <- struct{}{}
				defer func() { <-g.turn }()
				g.check(g.t, call, client, era)
			})
		default:
			g.check(t, call, client, era)
		}
	}
}

// check has a client make a call, and checks what came of it.
func (g *hostileGroup) check(t *testing.T, call *HostileCall, client *HostileClient, era string) {
	limit, y, id := time.Minute, g.yard, g.yard.ID()
	switch {
	case client.late || client.forges:
		limit = shortLimit
	case client.approves: // its question may stay open for others
		limit = 2 * considered
	}
	name := fmt.Sprintf("%s, client %s, %s", call.Name, client.Name, era)
	result := client.play(t, g.serve(limit, ""), name, era, id, y.In(call.Arguments))
	y.Check(t, name, id)
	if call.Asks&g.engine.Kind == 0 {
		return
	}
	for _, want := range client.Says {
		if !strings.Contains(result, want) {
			t.Errorf("%s: %q is not in the result: %s", name, want, result)
		}
	}
	if n := y.Requests(id); n > 0 {
		t.Errorf("%s: %d requests reached the model: %s", name, n, result)
	}
}

// callLimit is more than any call takes whose questions are answered or end.
const callLimit = time.Minute

// play makes a call and returns its result, or the error, as text. After it the session has ended.
func (h *HostileClient) play(t *testing.T, s Server, name, era, prompt, arguments string) string {
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	var c *Client
	answer := h.Answer
	if h.leaves {
		answer = func(ctx context.Context) (string, error) {
			c.Close()
			return Never(ctx)
		}
	}
	c = Dial(t, s, answer)
	defer c.End()
	if era != modern {
		if err := c.initialize(ctx); err != nil {
			return err.Error()
		}
	}
	tool := func(name, arguments string) string {
		if era == modern {
			return h.Modern(ctx, c, name, arguments)
		}
		return c.ask(ctx, mcptypes.ToolsCall.Name(), fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	}
	var result string
	if era == methods {
		result = c.converse(ctx, prompt, arguments)
	} else {
		result = tool("codex", fmt.Sprintf(`{"prompt":%q,%s}`, prompt, arguments))
	}
	var begun struct {
		StructuredContent struct{ ThreadID string }
	}
	if json.Unmarshal([]byte(result), &begun) == nil && strings.Contains(arguments, `"background":true`) && !h.leaves {
		waits := fmt.Sprintf(`{"threadIds":[%q],"seconds":30}`, begun.StructuredContent.ThreadID)
		open := func() bool { // a question is about to end, or the turn that it was about
			return strings.Contains(result, `"status":"waiting"`) || strings.Contains(result, `"status":"running"`)
		}
		for result = tool("codex-wait", waits); open() && Wait(ctx, shortLimit) == nil; {
			result = tool("codex-wait", waits)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("%s: the call hangs: %s", name, result)
	}
	return result
}

// isConversation reports whether newConversation has all arguments of the call.
func (h *HostileCall) isConversation() bool {
	var arguments map[string]json.RawMessage
	if json.Unmarshal([]byte("{"+h.Arguments+"}"), &arguments) != nil {
		return false
	}
	for name := range arguments {
		if !slices.Contains([]string{"approval-policy", "config", "cwd", "model", "profile", "sandbox"}, name) {
			return false
		}
	}
	return true
}

// converse makes a call by the methods of September 2025, and denies its commands. It returns the events
// at the end of the turn, or an error.
func (c *Client) converse(ctx context.Context, prompt, arguments string) string {
	c.Decide(`{"decision":"denied"}`)
	begun := c.ask(ctx, "newConversation", "{"+strings.ReplaceAll(arguments, "approval-policy", "approvalPolicy")+"}")
	var conversation struct{ ConversationID string }
	if json.Unmarshal([]byte(begun), &conversation) != nil {
		return begun
	}
	id := conversation.ConversationID
	c.ask(ctx, "addConversationListener", fmt.Sprintf(`{"conversationId":%q}`, id))
	c.ask(ctx, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":%q}}]}`, id,
		prompt))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, method := range []string{"error", "turn_aborted", "task_complete"} {
			if said := c.Received("codex/event/" + method); len(said) > 0 {
				return string(said[0])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err().Error()
		}
	}
}

func (c *Client) ask(ctx context.Context, method, params string) string {
	var result json.RawMessage
	if err := c.Call(ctx, method, json.RawMessage(params), &result); err != nil {
		return err.Error()
	}
	return string(result)
}

// Modern calls a tool as clients of 2026-07-28 do, and answers its questions. It returns the result, or the error, as text.
func (h *HostileClient) Modern(ctx context.Context, c *Client, tool, arguments string) string {
	meta := Meta
	if h.Answer != nil || h.leaves {
		meta = Capable(`"elicitation":{"form":{}}`)
	}
	more := ""
	for range 12 {
		result := c.ask(ctx, mcptypes.ToolsCall.Name(),
			fmt.Sprintf(`{"name":%q,"arguments":%s%s,"_meta":%s}`, tool, arguments, more, meta))
		var input struct {
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
			RequestState  string                     `json:"requestState"`
		}
		if err := json.Unmarshal([]byte(result), &input); err != nil || len(input.InputRequests) == 0 || h.leaves {
			return result
		}
		responses := map[string]json.RawMessage{}
		for key := range input.InputRequests {
			// clients of this era are not told that a question has ended
			waits, cancel := context.WithTimeout(ctx, 2*considered)
			said, err := h.Answer(waits)
			cancel()
			if err != nil { // they have no errors
				said = `{"action":"?"}`
			}
			if h.forges {
				key, input.RequestState = "other", input.RequestState+"0"
			}
			responses[key] = json.RawMessage(said)
		}
		said, err := json.Marshal(responses)
		if err != nil {
			return err.Error()
		}
		more = fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, input.RequestState, said)
	}
	return errEndless.Error()
}

var errEndless = errors.New("the questions do not end")

// HostileArgument reports whether a call of the table has an argument, or a key of config, of this name.
func HostileArgument(name string) bool {
	return slices.ContainsFunc(HostileCalls(), func(c HostileCall) bool {
		return strings.Contains(c.Arguments, `"`+name+`":`) || strings.Contains(c.Arguments, "."+name+`":`)
	})
}

// TestAskedCalls approves what a call asks for, once: it holds for the conversation on this server, and
// in a server that starts later the conversation has no more than the configuration gives. One in share of the calls is made.
func (e *HostileEngine) TestAskedCalls(t *testing.T, share int) {
	const full = `"sandbox":"danger-full-access","approval-policy":"never"`
	approves, yards := After(considered, Accept), NewYards(t)
	for n, tt := range []struct {
		name, arguments string
		questions       int  // -1 is some
		writes, again   bool // outside, in the first turn, and in one of another server
		access          setting.FullAccess
		answer          Answer
	}{
		{"approved", full, 1, true, false, "", approves},
		{"allowed by the settings", full, 0, true, true, setting.FullAccessAllow, nil},
		{"refused by the settings", full, 0, false, false, setting.FullAccessDeny, approves},
		{"the start folder", `"sandbox":"workspace-write","approval-policy":"never","cwd":"START"`, 0, false, false, "",
			approves},
		// about commands and a patch
		{"less", `"sandbox":"read-only","approval-policy":"untrusted"`, -1, false, false, "", Say(Decline)},
		{"nothing", `"approval-policy":"never"`, 0, false, false, "", approves},
	} {
		if n%share != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := yards.New(t, Confined, e.Model)
			thread := ""
			t.Run("asked", func(t *testing.T) {
				id := y.ID()
				c := Connect(t, e.Open(t, y)(time.Minute, tt.access), tt.answer)
				result := c.CallTool(t, "codex", y.In(fmt.Sprintf(`{"prompt":%q,%s}`, id, tt.arguments)))
				asked := len(c.Received("elicitation/create"))
				if tt.questions < 0 && asked == 0 || tt.questions >= 0 && asked != tt.questions {
					t.Errorf("%d questions, want %d: %s", asked, tt.questions, result)
				}
				if got := y.Written(id); len(got) > 0 != tt.writes {
					t.Errorf("written: %q\n%s", got, result)
				}
				if tt.access == setting.FullAccessDeny {
					if !strings.Contains(result, `calls.full_access = \"deny\" refuses it`) {
						t.Error(result)
					}
					return
				}
				thread, id = ThreadOf(t, result), y.ID()
				result = c.CallTool(t, "codex-reply", fmt.Sprintf(`{"prompt":%q,"threadId":%q}`, id, thread))
				if got := y.Written(id); len(got) > 0 != tt.writes {
					t.Errorf("written in a second turn: %q\n%s", got, result)
				}
				if again := len(c.Received("elicitation/create")); tt.writes && again != asked {
					t.Errorf("asked again: %d", again)
				}
			})
			if thread == "" {
				return
			}
			id := y.ID()
			c := Connect(t, e.Open(t, y)(time.Minute, tt.access), Say(Decline))
			result := c.CallTool(t, "codex-reply", fmt.Sprintf(`{"prompt":%q,"threadId":%q}`, id, thread))
			if got := y.Written(id); len(got) > 0 != tt.again {
				t.Errorf("written after a restart: %q\n%s", got, result)
			}
			if y.Requests(id) == 0 {
				t.Errorf("no turn after a restart: %s", result)
			}
		})
	}
}
