package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// TestVersions checks the results for clients of every version. All have the thread's id.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		asked, spoken             string
		annotations, outputSchema bool
	}{
		{"2024-11-05", "2024-11-05", false, false}, {"2025-03-26", "2025-03-26", true, false}, {"2025-06-18", "2025-06-18", true, true},
		{"2025-11-25", "2025-11-25", true, true}, {"2099-01-01", "2025-11-25", true, true}, {"bogus", "2025-11-25", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
			hello := c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, tt.asked))
			if !strings.Contains(hello, fmt.Sprintf(`"protocolVersion":%q`, tt.spoken)) {
				t.Errorf("%s: %s", tt.asked, hello)
			}
			tools := c.Ask(t, "tools/list", `{}`)
			result := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":{"progressToken":1}}`)
			for what, is := range map[string][2]bool{
				"annotations":       {strings.Contains(tools, `"annotations"`), tt.annotations},
				"outputSchema":      {strings.Contains(tools, `"outputSchema"`), tt.outputSchema},
				"structuredContent": {strings.Contains(result, `"structuredContent":{"threadId":"`), true}, // as Codex did
			} {
				if is[0] != is[1] {
					t.Errorf("%s: %s is there: %v", tt.asked, what, is[0])
				}
			}
			has(t, "a second initialize", c.Ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`), "(-32600)")
		})
	}
}

// TestFolder checks the working folder of calls without cwd: that of the options, and without one the root of the client,
// which is asked only then.
func TestFolder(t *testing.T) {
	for folder, own := range map[string]string{"/the/default": "/the/default", "": "/some/where"} {
		synctest.Test(t, func(t *testing.T) {
			e := &servertest.Engine{Turn: servertest.Echo}
			c := servertest.Join(t, codexserver.New(e, &codexserver.Options{Folder: folder}), servertest.Host{
				Era: servertest.Handshake, Capabilities: `"roots":{}`, Roots: `{"roots":[{"uri":"https://x/"},{"uri":"file:///some/where"}]}`,
			})
			for _, tt := range []struct{ method, params, want string }{
				{"tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`, own},
				{"tools/call", `{"name":"codex","arguments":{"prompt":"p","cwd":"/else/where"}}`, "/else/where"},
				{"newConversation", `{}`, "/the/default"},
				{"newConversation", `{"cwd":"/else/where"}`, "/else/where"},
			} {
				if folder == "" && tt.params == `{}` {
					continue // the server's own
				}
				c.Ask(t, tt.method, tt.params)
				all := e.Started()
				must.Equal(t, fmt.Sprintf("%s %s: cwd", tt.method, tt.params), tt.want, all[len(all)-1].Config.Cwd)
			}
			must.Equal(t, fmt.Sprintf("folder %q: the client was asked for roots", folder), folder == "", len(c.Received("roots/list")) > 0)
		})
	}
}

// TestArgumentsAsAText has clients that send all arguments as one text with JSON, in both eras. Other texts are refused.
func TestArgumentsAsAText(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
	for _, meta := range []string{"", `,"_meta":{` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":{}}`} {
		for arguments, answered := range map[string]bool{
			`"{\"prompt\": \"hello\"}"`: true, `" {\"prompt\":\"hello\"}\n"`: true, `{"prompt":"hello"}`: true,
			`"hello"`: false, `""`: false, `"[]"`: false, `"{\"prompt\":\"hello\"} x"`: false, `"{\"prompt\":\"a\",\"prompt\":\"hello\"}"`: false, `[{"prompt":"hello"}]`: false,
		} {
			var result struct {
				IsError bool `json:"isError"`
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			}
			err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":`+arguments+meta+`}`), &result)
			if ok := err == nil && !result.IsError && len(result.Content) > 0 && strings.Contains(result.Content[0].Text, "hello"); ok != answered {
				t.Errorf("%s%s: %+v, %v", arguments, meta, result, err)
			}
		}
	}
}

// TestBatch sends batches, which only clients of 2025-03-26 may send. The answer to a question comes in one too.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			w := &servertest.Worker{}
			ours := servertest.Lines(t, codexserver.New(w.Engine(), nil))
			send := func(line string) { writeAll(t, ours, line) }
			ping := `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`
			const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not accepted"}}`
			send(ping)
			must.Equal(t, "before initialize", refused, until(t, ours, `"id"`))
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, version))
			until(t, ours, `"id":0`)
			send(ping)
			got := until(t, ours, `"id"`)
			if version != "2025-03-26" {
				if got != refused {
					t.Errorf("%s: %s", version, got)
				}
			} else {
				if got != `[{"jsonrpc":"2.0","id":7,"result":{}}]` {
					t.Errorf("%s", got)
				}
				send(`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"git"}}},` +
					`{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}]`)
				until(t, ours, `"elicitation/create"`)
				send(`[{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{}}},{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}]`)
				got := until(t, ours, `[{"jsonrpc"`)
				for _, part := range []string{`{"jsonrpc":"2.0","id":2,"result":{}}`, `"id":3,"error":{"code":-32602`, `"id":1,"result":`, "git: approved"} {
					if !strings.Contains(got, part) {
						t.Errorf("no %s in %s", part, got)
					}
				}
				if w.Did() != "1 git" {
					t.Error(w.Did())
				}
			}
		})
	}
}

// TestTextIDs has a host that answers a question with its id as a text. No other spelling of the number is an answer.
func TestTextIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &servertest.Worker{}
		ours := servertest.Lines(t, codexserver.New(w.Engine(), nil))
		send := func(line string) { writeAll(t, ours, line) }
		send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
		until(t, ours, `"id":0`)
		send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"git"}}}`)
		until(t, ours, `"elicitation/create"`)
		for _, id := range []string{`"00"`, `"+0"`, `" 0"`, `"0.0"`, `"1"`, `""`} {
			send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{}}}`)
		}
		synctest.Wait()
		must.Equal(t, "before the answer", "1", w.Did())
		send(`{"jsonrpc":"2.0","id":"0","result":{"action":"accept","content":{}}}`)
		if got := until(t, ours, `"id":1,"result"`); !strings.Contains(got, "git: approved") {
			t.Error(got)
		}
	})
}

const (
	version2026  = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	capabilities = `"io.modelcontextprotocol/clientCapabilities":{}`
	modernMeta   = `"_meta":{` + version2026 + `,` + capabilities + `}`
)

// TestModernErrors lists wrong requests, in the order in which the server checks them. None of them starts anything.
func TestModernErrors(t *testing.T) {
	const (
		call         = `"name":"codex","arguments":{"prompt":"p"}`
		versionPath  = "/_meta/io.modelcontextprotocol~1protocolVersion"
		capablePath  = "/_meta/io.modelcontextprotocol~1clientCapabilities"
		otherVersion = `"io.modelcontextprotocol/protocolVersion":"2027-01-01"`
	)
	for _, tt := range []struct {
		method, params string
		code           int
		path           string // in data
	}{
		{"tools/call", `{` + call + `,"_meta":{` + otherVersion + `,` + capabilities + `}}`, -32022, ""},
		{"tools/call", `{` + call + `,"_meta":{` + otherVersion + `,"io.modelcontextprotocol/clientCapabilities":7}}`, -32022, ""},
		{"nope", `{"_meta":{` + otherVersion + `}}`, -32022, ""},
		{"tools/call", `{` + call + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + capabilities + `}}`, -32022, ""},
		{"tools/call", `{` + call + `,"_meta":{` + capabilities + `}}`, -32602, versionPath},
		{"tools/call", `{` + call + `,"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}`, -32602, versionPath},
		{"tools/call", `{` + call + `,"_meta":{"io.modelcontextprotocol/protocolVersion":20260728,` + capabilities + `}}`, -32602, versionPath},
		{"tools/call", `{` + call + `,"_meta":{"io.modelcontextprotocol/protocolVersion":null,` + capabilities + `}}`, -32602, versionPath},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `}}`, -32602, capablePath},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":[]}}`, -32602, capablePath},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":null}}`, -32602, capablePath},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `,` + capabilities + `,"progressToken":{}}}`, -32602, "/_meta"},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `,` + capabilities + `,"io.modelcontextprotocol/clientInfo":{}}}`, -32602, "/_meta"},
		{"tools/call", `{` + call + `,"_meta":{` + version2026 + `,` + version2026 + `,` + capabilities + `}}`, -32602, "/_meta"},
		{"tools/call", `{` + call + `,` + modernMeta + `,` + modernMeta + `}`, -32602, "/_meta"},
		{"tools/call", `{"name":"codex","name":"codex",` + modernMeta + `}`, -32602, "/name"},
		{"tools/call", `{` + call + `,"_meta":{},` + modernMeta + `}`, -32602, "/_meta"},
		{"tools/call", `{` + call + `,"_meta":null,` + modernMeta + `}`, -32602, "/_meta"},
		{"tools/call", `{"arguments":{},` + modernMeta + `}`, -32602, "/name"},
		{"tools/call", `{"name":7,` + modernMeta + `}`, -32602, "/name"},
		{"tools/call", `{"name":"nope",` + modernMeta + `}`, -32602, "/name"},
		{"tools/call", `{"name":"codex","arguments":[],` + modernMeta + `}`, -32602, "/arguments"},
		{"tools/call", `{"name":"codex","arguments":null,` + modernMeta + `}`, -32602, "/arguments"},
		{"tools/call", `{"name":"codex","arguments":{"prompt":"p","prompt":"q"},` + modernMeta + `}`, -32602, "/arguments"},
		{"tools/call", `{` + call + `,"requestState":7,` + modernMeta + `}`, -32602, "/requestState"},
		{"tools/call", `{` + call + `,"requestState":null,` + modernMeta + `}`, -32602, "/requestState"},
		{"tools/call", `{` + call + `,"requestState":"x",` + modernMeta + `}`, -32602, "/requestState"},
		{"tools/call", `{` + call + `,"requestState":"x","inputResponses":[],` + modernMeta + `}`, -32602, "/inputResponses"},
		{"tools/call", `{` + call + `,"inputResponses":{"q1":{"action":"accept"}},` + modernMeta + `}`, -32602, "/requestState"},
		{"server/discover", `{"_meta":{` + capabilities + `}}`, -32602, versionPath},
		{"nope", `{` + modernMeta + `}`, -32601, ""},
		{"initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"},` + modernMeta + `}`, -32601, ""},
		{"ping", `{` + modernMeta + `}`, -32601, ""},
		{"logging/setLevel", `{"level":"info",` + modernMeta + `}`, -32601, ""},
		{"roots/list", `{` + modernMeta + `}`, -32601, ""},
		{"resources/subscribe", `{"uri":"a:b",` + modernMeta + `}`, -32601, ""},
		{"newConversation", `{` + modernMeta + `}`, -32601, ""},
		{"sendUserMessage", `{"conversationId":"a","items":[],` + modernMeta + `}`, -32601, ""},
		{"subscriptions/listen", `{"notifications":{"taskIds":["a"]},` + modernMeta + `}`, -32021, ""},
	} {
		play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
			a := c.startWith(tt.method, tt.params).wait()
			if a.err == nil || int(a.err.Code) != tt.code || a.err.Message == "" || w.Did() != "0" {
				t.Fatalf("%s %s: %s, want %d; turns %s", tt.method, tt.params, a.text(), tt.code, w.Did())
			}
			checkData(t, a.err, tt.path)
		})
	}
}

// checkData checks the data of an error: the path of a member, or what the code requires.
func checkData(t *testing.T, e *jsonrpc.Error, path string) {
	t.Helper()
	var data struct {
		Path                 string
		Supported            []string
		Requested            string
		RequiredCapabilities struct{ Extensions map[string]any }
	}
	if e.Data != nil {
		must.OK(t, json.Unmarshal(e.Data, &data))
	}
	wrong := !strings.HasPrefix(data.Path, path) || (data.Path == "") != (path == "")
	switch e.Code {
	case modern.CodeUnsupportedProtocolVersion:
		wrong = wrong || !slices.Equal(data.Supported, allVersions) || data.Requested == ""
	case modern.CodeMissingRequiredClientCapability:
		wrong = wrong || len(data.RequiredCapabilities.Extensions) != 1
	}
	if wrong {
		t.Errorf("%s: data %s, want the path %q", e.Message, e.Data, path)
	}
}

var allVersions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// TestEras sends requests of both eras over one connection. State of the older era does
// not affect requests of the newer one, or the reverse.
func TestEras(t *testing.T) {
	for _, tt := range []struct {
		name    string
		begun   bool   // with initialize
		params  string // of tools/call
		request bool   // the question comes as one
	}{
		{"legacy without initialize", false, `{"name":"codex","arguments":{"prompt":"git"}}`, false},
		{"legacy after initialize", true, `{"name":"codex","arguments":{"prompt":"git"}}`, true},
		{"legacy with other _meta", true, `{"name":"codex","arguments":{"prompt":"git"},"_meta":{"progressToken":1,"traceparent":"x"}}`, true},
		{"modern after initialize", true, `{"name":"codex","arguments":{"prompt":"git"},` + modernMeta + `}`, false},
		{"modern, spelled otherwise", true, `{"name":"codex","arguments":{"prompt":"git"},"\u005fmeta":{` + strings.Replace(version2026, "io.", `\u0069o.`, 1) + `,` + capabilities + `}}`, false},
		{"modern without capabilities is no legacy", true, `{"name":"codex","arguments":{"prompt":"git"},"_meta":{` + version2026 + `}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, c *host, w *servertest.Worker) {
				if tt.begun {
					c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`)
				}
				c.startWith("tools/call", tt.params)
				synctest.Wait()
				must.Equal(t, "asked by a request", tt.request, len(c.Received("elicitation/create")) > 0)
				if strings.HasSuffix(w.Did(), "git") {
					t.Error("ran unasked")
				}
			})
		})
	}
}

func TestDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, begin := testenv.Home(t)+"/home", time.Now()
		connectModern(t, &servertest.Engine{Turn: servertest.AskExec}, &codexserver.Options{Home: home}).start("server/discover").wait()
		if _, err := os.Lstat(home); !errors.Is(err, fs.ErrNotExist) || time.Since(begin) != 0 { // it has no effect
			t.Errorf("it took %v, and left %v", time.Since(begin), err)
		}
		c := connectModern(t, &servertest.Engine{Turn: servertest.AskExec}, &codexserver.Options{EngineName: "e", EngineReason: "r", Version: "7"})
		a := c.start("server/discover").wait()
		var d modern.DiscoverResult
		must.OK(t, modern.DecodeStrict(a.raw, &d))
		must.Equal(t, "versions", allVersions, d.SupportedVersions)
		if d.CacheScope != "private" || d.TTLMs <= 0 || d.Capabilities.Tools == nil || d.Capabilities.Tools.ListChanged != nil || d.Capabilities.Logging == nil {
			t.Errorf("%s", a.raw)
		}
		if _, ok := d.Capabilities.Extensions["io.github.codexmcp/events"]; !ok {
			t.Errorf("extensions %v", d.Capabilities.Extensions)
		}
		if !strings.Contains(string(a.raw), `"io.github.codexmcp/engine":{"name":"e","reason":"r"}`) {
			t.Errorf("no note of the engine: %s", a.raw)
		}
		first := c.start("tools/list").wait()
		var list modern.ListToolsResult
		must.OK(t, modern.DecodeStrict(first.raw, &list))
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if !strings.Contains(*d.Instructions, "- "+tool.Name+": ") {
				t.Errorf("the instructions do not say what %s is for", tool.Name)
			}
		}
		must.Equal(t, "tools", []string{"codex", "codex-reply", "codex-wait", "codex-show", "codex-list", "codex-interrupt", "codex-models"}, names)
		if n := len([]rune(*d.Instructions)); n >= 2000 {
			t.Errorf("instructions of %d characters", n)
		}
		if list.TTLMs != 3_600_000 || list.CacheScope != "private" {
			t.Errorf("ttlMs %v, cacheScope %v", list.TTLMs, list.CacheScope)
		}
		c.capabilities = noForms
		if again := c.start("tools/list").wait(); string(again.raw) != string(first.raw) {
			t.Errorf("another list:\n%s\n%s", first.raw, again.raw)
		}
	})
}

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	oneJob = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait:10m touch"}}}`
	ownJob = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait:10m touch"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// slowStart is an engine whose conversations do not start. With Codex a start takes half a second.
type slowStart struct{}

func (slowStart) Start(ctx context.Context, _ protocol.Config, _ engine.Host) (engine.Conversation, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("thread/start: %w", context.Cause(ctx))
}

// TestEndOfInput sends files of messages, whose input ends before the first turn begins.
func TestEndOfInput(t *testing.T) {
	const (
		finished    = `"text":"touch: denied"`
		interrupted = `"text":"Turn aborted: the client closed the connection"`
	)
	for _, tt := range []struct {
		name  string
		e     engine.Engine
		input []string
		want  string
	}{
		{"calls alone", servertest.Script(), []string{oneJob}, finished},
		{"a session", servertest.Script(), []string{hello, oneJob}, interrupted},
		{"a session that began after the call", servertest.Script(), []string{oneJob, hello}, interrupted},
		{"a request of MCP 2026-07-28", servertest.Script(), []string{ownJob}, interrupted},
		{"a session whose conversation starts", slowStart{}, []string{hello, oneJob}, interrupted},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var out strings.Builder
			input := strings.NewReader(strings.Join(tt.input, "\n") + "\n")
			must.OK(t, codexserver.New(tt.e, nil).Serve(t.Context(), jsonrpc.Lines(input, &out, io.NopCloser(nil))))
			if got := out.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "elicitation/create") { // nobody is there to be asked
				t.Errorf("the output lacks %s, or asks:\n%s", tt.want, got)
			}
		})
	}
}

// writer is an [io.Writer].
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestEndOfInputInAQuestion ends the input while a question is open.
func TestEndOfInputInAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, input := io.Pipe()
		var out strings.Builder
		answers := writer(func(b []byte) (int, error) {
			switch line := string(b); {
			case strings.Contains(line, "serverInfo"): // before it the client cannot be asked
				go fmt.Fprintln(input, oneJob)
			case strings.Contains(line, "elicitation/create"):
				input.Close()
			}
			return out.Write(b)
		})
		go fmt.Fprintln(input, hello)
		must.OK(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil).Serve(t.Context(), jsonrpc.Lines(in, answers, io.NopCloser(nil))))
		_, after, asked := strings.Cut(out.String(), "elicitation/create")
		if !asked || !strings.Contains(after, `"isError":true`) {
			t.Errorf("the call was not asked, or has no result:\n%s", &out)
		}
	})
}

// TestSignalEndsFinishing interrupts calls that finish after the end of the input.
func TestSignalEndsFinishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out strings.Builder
		served := make(chan error, 1)
		go func() {
			served <- codexserver.New(servertest.Script(), nil).Serve(ctx, jsonrpc.Lines(strings.NewReader(oneJob+"\n"), &out, io.NopCloser(nil)))
		}()
		synctest.Wait()
		cancel(errors.New("signal"))
		must.OK(t, <-served)
		if !strings.Contains(out.String(), "Turn aborted: signal") {
			t.Errorf("the call was answered\n%s", &out)
		}
	})
}
