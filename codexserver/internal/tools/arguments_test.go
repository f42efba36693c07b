package tools_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRefusedArguments has calls that begin nothing, and whose error names the argument.
func TestRefusedArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Connect(t, codexserver.New(e, nil), nil)
		const sandboxes = `argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`
		for _, tt := range []struct{ tool, arguments, want string }{
			{"codex", `{}`, "argument /prompt is missing"},
			{"codex", `{"prompt":5}`, "argument /prompt: got number, want string"},
			{"codex", `{"prompt":"p","cwd":[1]}`, "argument /cwd: got array, want string"},
			{"codex", `{"prompt":"p","sandbox":"none"}`, sandboxes},
			{"codex", `{"prompt":"p","sandbox":""}`, sandboxes},
			{"codex", `{"prompt":"p","approval-policy":""}`, `argument /approval-policy: value must be one of "untrusted", "on-failure", "on-request", "never"`},
			{"codex", `{"prompt":"p","web-search":"live"}`, "argument /web-search: got string, want boolean"},
			{"codex-reply", `{"prompt":"p"}`, "argument /threadId is missing"},
			{"codex-reply", `{"prompt":"p","threadId":"a","sessionId":"b"}`, "arguments /threadId, /conversationId and /sessionId name different conversations"},
			{"codex-reply", `{"threadId":"a"}`, "argument /prompt is missing"},
			{"codex-reply", `{"prompt":"p","threadId":"a","outputSchema":{}}`, "unknown argument /outputSchema: did you mean output-schema?"},
			{"codex-reply", `{"prompt":"p","threadId":"a","Effort":"low"}`, "did you mean effort?"},
			{"codex-reply", `{"prompt":"p","threadId":"a","while-running":"steer","effort":"low"}`, "argument /effort: a running turn keeps its own"},
			{"codex-reply", `{"prompt":"p","threadId":"a","while-running":"steer","output-schema":{}}`, "argument /output-schema: a running turn keeps its own"},
			{"codex", `{"prompt":"p","sandbox_mode":"x"}`, "unknown argument /sandbox_mode: did you mean sandbox?"},
			{"codex", `{"prompt":"p","approval_policy":"x"}`, "did you mean approval-policy?"},
			{"codex", `{"prompt":"p","approvalPolicy":"x"}`, "did you mean approval-policy?"},
			{"codex", `{"prompt":"p","base_instructions":"x"}`, "did you mean base-instructions?"},
			{"codex", `{"prompt":"p","include_plan_tool":"x"}`, "did you mean include-plan-tool?"},
			{"codex", `{"prompt":"p","developer_instructions":"x"}`, "did you mean developer-instructions?"},
			{"codex", `{"prompt":"p","Config":"x"}`, "did you mean config?"},
			{"codex", `{"prompt":"p","promt":"x"}`, "did you mean prompt?"},
			{"codex", `{"prompt":"p","reasoning_effort":"x"}`, "did you mean effort?"},
			{"codex", `{"prompt":"p","model_reasoning_effort":"x"}`, "did you mean "},
			{"codex", `{"prompt":"p","outputSchema":"x"}`, "did you mean output-schema?"},
			{"codex", `{"prompt":"p","schema":"x"}`, "did you mean output-schema?"},
			{"codex", `{"prompt":"p","image":"x"}`, "did you mean images?"},
			{"codex", `{"prompt":"p","web_search":"x"}`, "did you mean web-search?"},
			{"codex", `{"prompt":"p","timeout":"x"}`, "the arguments are approval-policy, background, base-instructions, budget, compact-prompt, config, cwd, developer-instructions, effort, images, include-plan-tool, model, output-schema, profile, prompt, sandbox, web-search, worktree (keys of config.toml go into config)"},
			{"codex", `{"prompt":"p","a/b":"x"}`, "unknown argument /a~1b: the arguments are"},
			{"codex", `{"prompt":"p","":"x"}`, "unknown argument /: the arguments are"},
			{"codex", `{"prompt":"p","` + strings.Repeat("é", 1e5) + `":"x"}`, "/" + strings.Repeat("é", 50) + ": the arguments are"},
			{"nope", `{}`, `unknown tool "nope"`},
		} {
			r := use(t, c, tt.tool, tt.arguments, nil)
			if text := r.Content[0].Text; !r.IsError || len(r.Content) != 1 || !strings.Contains(text, tt.want) || tt.tool != "nope" && !strings.HasPrefix(text, tt.tool+": ") {
				t.Errorf("%s %.100s: %.400q, want %s", tt.tool, tt.arguments, text, tt.want)
			}
		}
		if n := len(e.Started()) + len(e.Resumed()); n != 0 {
			t.Errorf("%d conversations were started", n)
		}
	})
}

// TestNullArguments treats null as a missing argument. codex-reply ignores unknown
// arguments, as Codex's servers did.
func TestNullArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":null,"compact-prompt":null,"sandbox":null,"config":null,"timeout":null}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions != nil || lastConfig(e).CompactPrompt != nil {
			t.Errorf("nulls: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p","developer-instructions":"be an expert","compact-prompt":""}}`)
		if !strings.Contains(got, `"text":"p"`) || lastConfig(e).DeveloperInstructions == nil || *lastConfig(e).DeveloperInstructions != "be an expert" || lastConfig(e).CompactPrompt == nil {
			t.Errorf("the arguments of 2026: %s, %+v", got, lastConfig(e))
		}
		got = c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"config":{"model":"m"},"timeout":5}}`, servertest.ThreadOf(t, got)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("codex-reply with more than it knows: %s", got)
		}
	})
}

func TestThreadIDForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		for _, name := range []string{"threadId", "conversationId", "sessionId"} {
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q",%q:%q}}`, name, "URN:UUID:"+strings.ToUpper(id)))
			if !strings.Contains(got, `"text":"q"`) || servertest.ThreadOf(t, got) != id {
				t.Errorf("%s: %s", name, got)
			}
		}
		got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"conversationId":%q}}`, id, strings.ToUpper(id)))
		if !strings.Contains(got, `"text":"q"`) {
			t.Errorf("one id in two forms: %s", got)
		}
		for _, wrong := range []string{"(" + id + ")", id[1:], "urn:" + id} {
			got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q}}`, wrong))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, wrong) {
				t.Errorf("%s: %s", wrong, got)
			}
		}
		if got := c.Ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"q","threadId":"past"}}`); !strings.Contains(got, `"text":"q"`) {
			t.Errorf("an id that is no UUID: %s", got)
		}
	})
}

// lastConfig returns the configuration of the conversation that was started last.
func lastConfig(e *servertest.Engine) protocol.Config {
	all := e.Started()
	return all[len(all)-1].Config
}

// says returns an engine whose turns return an answer.
func says(answer string) *servertest.Engine {
	return &servertest.Engine{
		Turn: func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
			host.Emit(protocol.AgentMessage{Message: answer})
			return nil
		},
		ModelList: &protocol.ModelList{
			Models: []protocol.Model{
				{Name: "one", IsDefault: true, Efforts: []protocol.ReasoningEffort{"low", "high"}, DefaultEffort: "low", Profiles: []string{"p"}},
				{Name: "two", Description: strings.Repeat("x", 1000)},
			},
			Notes: []string{"a note"},
		},
	}
}

// lastTurn returns the input of the last turn.
func lastTurn(e *servertest.Engine) protocol.TurnInput {
	all := e.Turns()
	return all[len(all)-1]
}

const png = "\x89PNG\r\n\x1a\n rest"

func pngURL() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png))
}

// TestTurnArguments checks that arguments about the conversation and the turn reach the
// engine.
func TestTurnArguments(t *testing.T) {
	dir := t.TempDir()
	boxtest.Lay(t, dir, "a.png="+png)
	e := says(`{"a":1}`)
	c := servertest.Dial(t, codexserver.New(e, nil), nil)
	got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p","cwd":%q,"effort":"high","output-schema":{"type":"object"},
		"images":["a.png",%q],"web-search":true,"sandbox":"workspace-write"}}`, dir, pngURL()))
	if !strings.Contains(got, `"output":{"a":1}`) || strings.Contains(got, "isError") {
		t.Errorf("got %s", got)
	}
	want := protocol.Config{Effort: "high", WebSearch: new(true)}
	if lastConfig(e).Effort != want.Effort || lastConfig(e).WebSearch == nil || !*lastConfig(e).WebSearch {
		t.Errorf("the conversation got %+v", lastConfig(e))
	}
	if lastTurn(e).Effort != "" || string(lastTurn(e).OutputSchema) != `{"type":"object"}` || len(lastTurn(e).Items) != 3 || lastTurn(e).Items[1].ImageURL != pngURL() || lastTurn(e).Items[2].ImageURL != pngURL() {
		t.Errorf("the turn got %+v", lastTurn(e))
	}
	id := servertest.ThreadOf(t, got)
	got = c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"q","threadId":%q,"effort":"low","images":["a.png"],"output-schema":{"type":"array"}}}`, id))
	if lastTurn(e).Effort != "low" || len(lastTurn(e).Items) != 2 || string(lastTurn(e).OutputSchema) != `{"type":"array"}` {
		t.Errorf("the second turn got %+v: %s", lastTurn(e), got)
	}
	if !strings.Contains(got, `The answer does not fit output-schema: got object, want array`) || strings.Contains(got, `"output"`) {
		t.Errorf("an answer that does not fit: %s", got)
	}
	if c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"r","threadId":%q,"output-schema":null,"effort":null,"images":null}}`, id)); lastTurn(e).Effort != "" || len(lastTurn(e).Items) != 1 || lastTurn(e).OutputSchema != nil {
		t.Errorf("the third turn got %+v", lastTurn(e))
	}
}

// TestTurnArgumentsRefused checks that a wrong argument starts nothing, and that the error
// names it and says why.
func TestTurnArgumentsRefused(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	boxtest.Lay(t, outside, "secret.png="+png)
	boxtest.Lay(t, dir, "text.png=a text", "link.png -> "+filepath.Join(outside, "secret.png"), "folder -> "+outside, "large.png", "fit.png="+png, "rest.png="+png)
	for name, size := range map[string]int64{"large.png": 20<<20 + 1, "fit.png": 20 << 20, "rest.png": 12<<20 - 8} {
		must(t, os.Truncate(filepath.Join(dir, name), size))
	}
	e := says("ok")
	c := servertest.Dial(t, codexserver.New(e, nil), nil)
	turn := servertest.ThreadOf(t, c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p","cwd":%q}}`, dir)))
	begun := len(e.Turns())
	for arguments, want := range map[string]string{
		`"effort":"High!"`:    "/effort: want a word",
		`"effort":5`:          "/effort: got number, want string",
		`"output-schema":"x"`: "/output-schema: got string, want object",
		`"output-schema":{"$ref":"http://127.0.0.1:1/x"}`:        "/output-schema: ",
		`"output-schema":{"$ref":"file:///etc/passwd"}`:          "/output-schema: ",
		`"output-schema":{"type":"text"}`:                        "/output-schema: at /type: got",
		`"images":"a.png"`:                                       "/images/0: ",
		`"images":"[a.png"`:                                      "/images: got string, want array",
		`"images":[1]`:                                           "/images/0: got number, want string",
		`"images":[""]`:                                          "/images/0: it is empty",
		`"images":["https://example.com/a.png"]`:                 "/images/0: the server fetches nothing",
		`"images":["file:///etc/passwd"]`:                        "/images/0: the server fetches nothing",
		`"images":["none.png"]`:                                  "/images/0: ",
		`"images":["text.png"]`:                                  "/images/0: not an image",
		`"images":["/dev/zero"]`:                                 "a device, not a regular file",
		`"images":["."]`:                                         "a folder, not a regular file",
		`"images":["link.png"]`:                                  "/images/0: " + filepath.Join(dir, "link.png") + " leads out of the working folder",
		`"images":["folder/secret.png"]`:                         "leads out of the working folder",
		`"images":["large.png"]`:                                 "/images/0: it has more than 20971520 bytes",
		`"images":["fit.png","fit.png"]`:                         "/images/1: it has more than 12582912 bytes, or the images together",
		`"images":["fit.png","rest.png","` + pngURL() + `"]`:     "/images/2: it has more than 8 bytes, or the images together",
		`"images":["data:image/png;base64,AAAA"]`:                "/images/0: not an image",
		`"images":["data:image/png,abc"]`:                        "/images/0: want a data URL with base64",
		`"images":["data:image/png;base64,***"]`:                 "/images/0: its base64 cannot be read",
		`"images":["data:image/svg+xml;base64,PHN2Zy8+"]`:        "/images/0: not an image",
		`"images":["1","2","3","4","5","6","7","8","9","a","b"]`: "/images: 11 are more than 10",
	} {
		for _, tool := range []string{`{"name":"codex","arguments":{"prompt":"p","cwd":` + fmt.Sprintf("%q", dir), `{"name":"codex-reply","arguments":{"prompt":"p","threadId":` + fmt.Sprintf("%q", turn)} {
			got := c.Ask(t, "tools/call", tool+","+arguments+`}}`)
			if !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) {
				t.Errorf("%.60s %.80s: %.400s, want %s", tool, arguments, got, want)
			}
		}
	}
	if n := len(e.Turns()) - begun; n != 0 {
		t.Errorf("%d turns began", n)
	}
}

func TestModels(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(says(""), nil), nil)
	got := c.Ask(t, "tools/call", `{"name":"codex-models"}`)
	for _, want := range []string{
		`"structuredContent":{"models":[{"model":"one","default":true,"profiles":["p"],"efforts":["low","high"],"defaultEffort":"low"},{"model":"two","description":"xxx`,
		`"notes":["a note"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if len(got) > 1500 {
		t.Errorf("a description of %d bytes is not cut", len(got))
	}
	if list := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil).Ask(t, "tools/list", `{}`); strings.Contains(list, `"name":"codex-models"`) {
		t.Error("an engine that lists no models has the tool")
	}
}
