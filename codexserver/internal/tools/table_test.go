package tools_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestChosenTools offers some of the tools. Arguments whose results need another tool are
// not offered.
func TestChosenTools(t *testing.T) {
	for _, tt := range []struct {
		chosen, tools []string
		refused       []string // arguments of codex, those of codex-reply among them
	}{
		{nil, append([]string{"codex", "codex-reply"}, config.Choosable...), nil},
		{config.Choosable, append([]string{"codex", "codex-reply"}, config.Choosable...), nil},
		{[]string{}, []string{"codex", "codex-reply"}, []string{"background"}},
		{[]string{"codex", "codex-wait", "codex-wait", "nosuch"}, []string{"codex", "codex-reply", "codex-wait"}, nil},
		{[]string{"codex-review", "codex-list"}, []string{"codex", "codex-reply", "codex-list", "codex-review"}, []string{"background"}},
	} {
		t.Run(fmt.Sprint(tt.chosen), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, &codexserver.Options{Home: t.TempDir(), Calls: codexserver.CallOptions{Tools: tt.chosen}}), nil)
				var names []string
				for _, tool := range listed(t, c) {
					names = append(names, tool.Name)
					for _, name := range tt.refused {
						if _, ok := tool.InputSchema.Properties[name]; ok {
							t.Errorf("%s offers %s", tool.Name, name)
						}
					}
				}
				if diff := cmp.Diff(tt.tools, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
					t.Errorf("the tools (-want +got):\n%s", diff)
				}
				for _, name := range append([]string{"codex", "codex-reply"}, config.Choosable...) {
					got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, name))
					if unknown := strings.Contains(got, "unknown tool"); unknown == slices.Contains(tt.tools, name) {
						t.Errorf("a call of %s: %s", name, got)
					}
				}
				for _, name := range tt.refused {
					got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p",%q:true}}`, name))
					if !strings.Contains(got, "codex: argument /"+name+" is locked: the server's own configuration decides") {
						t.Errorf("%s: %s", name, got)
					}
				}
				got := c.Ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"p","threadId":"past","background":true}}`)
				if locked := strings.Contains(got, "codex-reply: argument /background is locked"); locked != slices.Contains(tt.refused, "background") {
					t.Errorf("codex-reply: %s", got)
				}
			})
		})
	}
}

// TestLocked locks arguments: no tool offers them, nothing starts with them, also by newConversation, and no key of config
// chooses what they choose. A call with a locked cwd works in the server's folder.
func TestLocked(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := t.TempDir()
	free := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
	offered := slices.Collect(maps.Keys(listed(t, free)[0].InputSchema.Properties))
	if diff := cmp.Diff(append(slices.Clone(config.Lockable), "background", "prompt"), offered, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("what can be locked, and the tool's arguments (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		calls codexserver.CallOptions
		want  map[string]string // by the arguments of codex beside a prompt, or by the parameters of newConversation
		turn  string            // which arguments of a turn a call may still set
	}{
		{codexserver.CallOptions{LockedArguments: []string{"config", "sandbox"}}, map[string]string{
			`"model":null`:                          `"text":"denied"`,
			`"config":{"notify":["sh"]}`:            "codex: argument /config is locked",
			`"config":null`:                         "codex: argument /config is locked",
			`"sandbox":"danger-full-access"`:        "codex: argument /sandbox is locked",
			`"\u0073andbox":"danger-full-access"`:   "codex: argument /sandbox is locked",
			`"approval-policy":"never","Config":{}`: "unknown argument /Config",
		}, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"approval-policy", "config", "cwd", "profile", "sandbox"}}, map[string]string{
			`"cwd":"/"`: "argument /cwd is locked", `"cwd":"."`: "argument /cwd is locked", `"cwd":null`: "argument /cwd is locked", `"model":null`: `"text":"denied"`,
		}, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"config"}}, nil, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"sandbox"}}, nil, "effort images output-schema web-search"},
		{codexserver.CallOptions{LockedArguments: []string{"effort", "images", "output-schema", "web-search"}}, nil, ""},
		{codexserver.CallOptions{LockedArguments: []string{"approval-policy", "sandbox", "web-search"}, Folders: []string{folder}}, map[string]string{
			`{"sandbox":"read-only"}`:                  "argument /sandbox is locked",
			`{"approvalPolicy":"never"}`:               "argument /approval-policy is locked",
			`{"config":{"sandbox_mode":"read-only"}}`:  "sandbox_mode is locked with the argument /sandbox",
			`{"config":{"tools":{"web_search":true}}}`: "tools.web_search is locked with the argument /web-search",
			`{"cwd":"/"}`: "argument /cwd: ",
			`{"config":{"model_verbosity":"low"},"cwd":""}`: "conversationId",
		}, "effort images output-schema"},
		{codexserver.CallOptions{TrustedCalls: true, LockedArguments: []string{"approval-policy", "profile", "sandbox", "web-search"}}, map[string]string{
			`"config":{"model_reasoning_effort":"low"}`:                    `"text":"denied"`,
			`"config":{"tools":{"view_image":false}}`:                      `"text":"denied"`,
			`"config":{"approval_policy":"never"}`:                         "approval_policy is locked with the argument /approval-policy",
			`"config":{"approval\u005fpolicy":"never"}`:                    "approval_policy is locked with the argument /approval-policy",
			`"config":{"profile":"loose"}`:                                 "profile is locked with the argument /profile",
			`"config":{"sandbox_mode":"danger-full-access"}`:               "sandbox_mode is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write":{"network_access":true}}`: "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write.network_access":true}`:     "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write.writable_roots":["/"]}`:    "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"tools":{"web_search":true}}`:                       "tools.web_search is locked with the argument /web-search",
			`"config":{"tools.web_search":true}`:                           "tools.web_search is locked with the argument /web-search",
			`"config":{"tools":"{\"web_search\":true}"}`:                   "tools.web_search is locked with the argument /web-search",
			`"config":"{\"tools\":\"{\\\"web_search\\\":true}\"}"`:         "tools.web_search is locked with the argument /web-search",
			`"config":{"features":"{\"web_search_request\":\"true\"}"}`:    "features.web_search_request is locked with the argument /web-search",
			`"config":{"\"approval_policy\"":"never"}`:                     "approval_policy is locked with the argument /approval-policy",
			`"config":{" approval_policy ":"never"}`:                       "approval_policy is locked with the argument /approval-policy",
			`"config":{"'tools' . 'web_search'":true}`:                     "tools.web_search is locked with the argument /web-search",
			`"config":{"tools":{"'web_search'":true}}`:                     "tools.web_search is locked with the argument /web-search",
			`"config":{"tools.web_search.mode":1}`:                         "tools.web_search is locked with the argument /web-search",
			`"config":{"permissions.mine.extends":"full"}`:                 "permissions is locked with the argument /sandbox",
		}, "effort images output-schema"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &servertest.Engine{Turn: servertest.AskExec}
			c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Folder: strings.Join(tt.calls.Folders, ""), Calls: tt.calls}), nil)
			for _, tool := range listed(t, c) {
				for _, name := range tt.calls.LockedArguments {
					if _, ok := tool.InputSchema.Properties[name]; ok && tool.Name != "codex-list" { // whose cwd is a filter
						t.Errorf("%s offers %s", tool.Name, name)
					}
				}
			}
			for arguments, want := range tt.want {
				method, params, before := "tools/call", `{"name":"codex","arguments":{"prompt":"p",`+arguments+`}}`, len(e.Started())
				if strings.HasPrefix(arguments, "{") {
					method, params = "newConversation", arguments
				}
				got := c.Ask(t, method, params)
				if refused := strings.Contains(want, "argument /"); !strings.Contains(got, want) || refused != (len(e.Started()) == before) {
					t.Errorf("%s: %s, want %s", arguments, got, want)
				}
			}
			id := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"p"}`))
			for name, value := range map[string]string{"effort": `"low"`, "images": `[]`, "output-schema": `{}`, "web-search": `true`} {
				for i, call := range []string{`{"prompt":"p",`, fmt.Sprintf(`{"prompt":"p","threadId":%q,`, id)} {
					tool, taken := listed(t, c)[i], slices.Contains(strings.Fields(tt.turn), name)
					if i == 1 && name == "web-search" {
						continue
					}
					if _, ok := tool.InputSchema.Properties[name]; ok != taken {
						t.Errorf("%v: %s offers %s: %t", tt.calls, tool.Name, name, ok)
					}
					got := c.CallTool(t, tool.Name, call+fmt.Sprintf(`%q:%s}`, name, value))
					if refused := strings.Contains(got, "argument /"+name+" is locked"); refused == taken {
						t.Errorf("%v: %s with %s: %s", tt.calls, tool.Name, name, got)
					}
				}
			}
			if got := lastConfig(e).Cwd; got == "" || got == "/" {
				t.Errorf("cwd %q", got)
			}
		})
	}
}

// TestToolListIsShort bounds the list of tools, which clients pass to their models.
func TestToolListIsShort(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir()}), nil)
	hello := c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	var r struct{ Instructions string }
	if err := json.Unmarshal([]byte(hello), &r); err != nil || len(r.Instructions) >= 2000 || !strings.Contains(r.Instructions, "codex-review") {
		t.Errorf("%d characters of instructions, %v: %s", len(r.Instructions), err, hello)
	}
	list := c.Ask(t, "tools/list", `{}`)
	if len(list) >= 12_000 || !strings.Contains(list, `"codex-review"`) {
		t.Errorf("tools/list has %d characters", len(list))
	}
	t.Logf("%d characters of instructions, %d of tools/list", len(r.Instructions), len(list))
}
