package tool_test

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

func begin(t testing.TB, dir string) (*tool.Turn, *host) {
	h := &host{answer: elicit.Approved}
	box := newBox(tool.Options{Environ: environ, PlanTool: true, ImageTool: true})
	return box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "never", Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: "danger-full-access"}}), h
}

// TestArgumentErrors checks that wrong arguments are refused without a question.
func TestArgumentErrors(t *testing.T) {
	tests := []struct{ name, tool, arguments, want string }{
		{"no JSON", "shell", `ls`, "failed to parse function arguments: "},
		{"a number for an array", "shell", `{"command":1}`, "failed to parse function arguments: command: want an array, found number"},
		{"a blank line", "shell", `{"command":" \n"}`, "failed to parse function arguments: command: want at least one word"},
		{"a NUL byte in a line", "shell", `{"command":"ls\u0000"}`, "failed to parse function arguments: command.2: has a NUL byte"},
		{"a number for a string", "shell", `{"command":["ls",1]}`, "failed to parse function arguments: command.1: want a string, found number"},
		{"no command", "shell", `{}`, "failed to parse function arguments: command: want at least one word"},
		{"a NUL byte", "shell", `{"command":["ls","a\u0000b"]}`, "failed to parse function arguments: command.1: has a NUL byte"},
		{"a NUL byte in the folder", "shell", `{"command":["ls"],"workdir":"a\u0000"}`, "failed to parse function arguments: workdir: has a NUL byte"},
		{"a part of a list in a text", "shell", `{"command":"[\"bash\",\"-c\",\"ls"}`, "failed to parse function arguments: command: want an array, found a text with a part of one"},
		{"a list of Python in a text", "shell", `{"command":"['bash', '-c', 'ls']"}`, "failed to parse function arguments: command: want an array, found a text with a part of one"},
		{"another list in a text", "shell", `{"command":"[\"ls\",1]"}`, "failed to parse function arguments: command: want an array, found a text with a part of one"},
		{"a word for a number", "shell", `{"command":["ls"],"timeout_ms":"one"}`, "failed to parse function arguments: timeout_ms: want a number, found string"},
		{"another name for the time-out", "shell", `{"command":["ls"],"timeout":-1}`, "failed to parse function arguments: timeout: want more than 0"},
		{"zero time-out", "shell", `{"command":["ls"],"timeout_ms":0}`, "failed to parse function arguments: timeout_ms: want more than 0"},
		{"a string for a boolean", "shell", `{"command":["ls"],"with_escalated_permissions":"yes"}`, "failed to parse function arguments: with_escalated_permissions: want true or false, found string"},
		{"a text within a text", "shell", `{"command":["ls"],"timeout_ms":"\"1\""}`, "failed to parse function arguments: timeout_ms: want a number, found string"},
		{"a number below zero in a text", "shell", `{"command":["ls"],"timeout_ms":"-1"}`, "failed to parse function arguments: timeout_ms: want more than 0"},
		{"twice", "shell", `{"command":["ls"],"command":["rm"]}`, "failed to parse function arguments: "},
		{"no plan", "update_plan", `{}`, "failed to parse function arguments: plan: missing"},
		{"no step", "update_plan", `{"plan":[{"status":"pending"}]}`, "failed to parse function arguments: plan.0.step: missing"},
		{"unknown status", "update_plan", `{"plan":[{"step":"x","status":"done"}]}`, "failed to parse function arguments: plan.0.status: want "},
		{"no input", "apply_patch", `{}`, "failed to parse function arguments: input: missing"},
		{"an empty plan", "update_plan", `{"plan":""}`, "failed to parse function arguments: plan: missing"},
		{"no path", "view_image", `{}`, "failed to parse function arguments: path: missing"},
		{"unknown tool", "nope", `{}`, "unsupported call: nope"},
	}
	fails := func(dir string, call tool.Call, want string) {
		t.Helper()
		for _, policy := range []protocol.ApprovalPolicy{"never", "untrusted"} {
			turn, h := begin(t, dir)
			turn.ApprovalPolicy = policy
			res, err := turn.Call(t.Context(), call)
			if err != nil || !strings.HasPrefix(res.Output, want) || len(h.all) > 0 {
				t.Errorf("%s %+v: %q, %v, events %v, want %q", policy, call, res.Output, err, h.all, want)
			}
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fails(t.TempDir(), tool.Call{ID: "c1", Name: tt.tool, Arguments: tt.arguments}, tt.want)
		})
	}
	nul := "a\x00b"
	fails("/", tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"ls", nul}}}, "failed to parse function arguments: command.1: has a NUL byte")
	fails("/", tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"ls"}, WorkingDirectory: &nul}}, "failed to parse function arguments: workdir: has a NUL byte")
	// A client's folder.
	fails("/"+nul, tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"touch", "x"}}}, "failed to parse function arguments: workdir: has a NUL byte")
}

// TestArgumentsAsTexts reads the arguments that weak models write as texts.
func TestArgumentsAsTexts(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Names)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"shell", `{"command":"[\"bash\",\"-c\",\"echo a\\\\tb; echo c\"]"}`, `atb\nc\n`},
		{"shell", `{"command":" [\"echo\", \"x y\"]\n","timeout_ms":"5000"}`, `x y\n`},
		{"shell", `{"workdir":"a\"b","command":["pwd"],"timeout_ms":" 5e3 ","with_escalated_permissions":"false"}`, `a\"b\n`},
		{"shell", `{"command":"[ -d . ] && echo yes"}`, `yes\n`},
		{"list", "", `a"b/`},
		{"list", "\n", `a"b/`},
		{"read", `{"path":"file","first_line":"2","last_line":"2"}`, "2\ttwo"},
		{"update_plan", `{"plan":"[{\"step\":\"x\",\"status\":\"pending\"}]"}`, "Plan updated"},
		{"edit", `{"path":"file","old":"one","new":"1","all":"true"}`, "Success"},
		{"apply_patch", `{"input":"{\"command\":[\"apply_patch\",\"*** Begin Patch\\n*** Add File: new\\n+x\\n*** End Patch\"]}"}`, "Success"},
		{"shell", `{"command":["[\"echo\", \"x y\"]"]}`, `x y\n`},
		{"shell", `{"command":["LINE","[\"echo\",\"x y\"]"]}`, `x y\n`},
		{"shell", `{"command":["echo","x"],"timeout_ms":"","with_escalated_permissions":" ","workdir":null}`, `x\n`},
		{"shell", `{"command":["echo","x"],"timeout_ms":"null","with_escalated_permissions":"False"}`, `x\n`},
		{"shell", `{"command":["LINE","[\"echo\",\"x"]}`, "command: want an array, found a text with a part of one"},
		{"list", `""`, `a"b/`},
		{"read", `{"path":"file","first_line":2.5}`, "first_line: "},
		{"read", `{"path":"file","first_line":2.0,"last_line":"2.00"}`, "2\ttwo"},
		{"update_plan", `{"plan":["{\"step\":\"x\",\"status\":\"pending\"}"]}`, "Plan updated"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"}`, "Success"},
		{"apply_patch", `{"input":["apply_patch","*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"]}`, "Success"},
		{"apply_patch", `{"input":"\"*** Begin Patch\\n*** Add File: new\\n+x\\n*** End Patch\""}`, "Success"},
		{"shell", `{"command":["apply_patch","[\"*** Begin Patch\\n*** Add File: newer\\n+x\\n*** End Patch\"]"]}`, "Success"},
	} {
		dir := t.TempDir()
		must.OK(t, os.Mkdir(filepath.Join(dir, `a"b`), 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte("one\ntwo\n"), 0o600))
		h := &host{}
		box := newBox(tool.Options{Environ: environ, PlanTool: true, PatchTool: tt.tool == "apply_patch", FileTools: tt.tool != "apply_patch"})
		turn := box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "never", Host: h, SandboxPolicy: protocol.SandboxPolicy{Mode: "danger-full-access"}})
		arguments := strings.Replace(tt.arguments, "LINE", strings.Join(box.LineShell(), `","`), 1)
		got := must.Get(turn.Call(t.Context(), tool.Call{ID: "c", Name: tt.tool, Arguments: arguments}))(t)
		if !strings.Contains(got.Output, tt.want) {
			t.Errorf("%s %s: %s\nwant %s", tt.tool, tt.arguments, got.Output, tt.want)
		}
	}
}

func TestOffer(t *testing.T) {
	names := func(o tool.Options) (names []string) {
		for _, d := range tool.New(o).Offer(false) {
			if d.Type == "" {
				var schema struct {
					Type       string         `json:"type"`
					Properties map[string]any `json:"properties"`
					Required   []string       `json:"required"`
				}
				if err := json.Unmarshal(d.Parameters, &schema); err != nil {
					t.Errorf("%s: %v", d.Name, err)
				}
				for _, name := range schema.Required {
					if schema.Properties[name] == nil {
						t.Errorf("%s requires %s, which it does not have", d.Name, name)
					}
				}
			}
			names = append(names, d.Name+d.Type)
		}
		return names
	}
	must.Equal(t, "result", []string{"shell"}, names(tool.Options{}))
	all := tool.Options{LocalShell: true, PatchTool: true, PlanTool: true, ImageTool: true}
	must.Equal(t, "result", []string{"local_shell", "update_plan", "apply_patch", "view_image"}, names(all))
}

func TestUnknownDecision(t *testing.T) {
	dir := t.TempDir()
	turn, h := begin(t, dir)
	turn.ApprovalPolicy, h.answer = protocol.ApprovalUntrusted, "yes"
	res := called(t, turn, shellCall("", "touch", "made"))
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil || h.steps() != "ask" || !strings.HasPrefix(res.Output, "the command was not run") {
		t.Errorf("%q, steps %s, made %v", res.Output, h.steps(), err)
	}
}

func TestUpdatePlan(t *testing.T) {
	turn, h := begin(t, t.TempDir())
	res, err := turn.Call(t.Context(), tool.Call{ID: "c1", Name: "update_plan", Arguments: `{"plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"pending"}]}`})
	if err != nil || res.Output != "Plan updated" {
		t.Errorf("%q, %v", res.Output, err)
	}
	want := []protocol.EventMsg{protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "a", Status: "in_progress"}, {Step: "b", Status: "pending"}}}}
	must.Equal(t, "events", want, h.all)
}

// pictures are the beginnings of files of each type that models take.
var pictures = map[string]string{
	"png": "\x89PNG\r\n\x1a\n", "jpeg": "\xff\xd8\xff\xe0", "gif": "GIF89a", "webp": "RIFF\x10\x00\x00\x00WEBPVP8 ",
}

func TestViewImage(t *testing.T) {
	dir := t.TempDir()
	files, shown := map[string]string{
		"b.png": "no image", "c.txt": "text", "d.bmp": "BM", "e.ico": "\x00\x00\x01\x00", "f.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>", "g.pdf": "%PDF-1.4",
		"large": pictures["png"] + strings.Repeat("x", tool.MaxImage),
	}, map[string]string{}
	for kind, content := range pictures {
		files[kind], shown[kind] = content, "data:image/"+kind+";base64,"+base64.StdEncoding.EncodeToString([]byte(content))
	}
	for name, content := range files {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666))
	}
	shown[filepath.Join(dir, "png")] = shown["png"]
	if err := os.Symlink("/proc/self/environ", filepath.Join(dir, "secrets.png")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(slices.Sorted(maps.Keys(files)), []string{filepath.Join(dir, "png"), "secrets.png", "missing.png", "."}) {
		turn, h := begin(t, dir)
		arguments, _ := json.Marshal(map[string]string{"path": path})
		res := called(t, turn, tool.Call{ID: "c1", Name: "view_image", Arguments: string(arguments)})
		images := slices.DeleteFunc(h.all, func(m protocol.EventMsg) bool { _, ok := m.(protocol.ViewImageToolCall); return !ok })
		if shown[path] == "" {
			if len(res.Items)+len(images) > 0 || h.steps() != "" || !strings.HasPrefix(res.Output, "the image cannot be shown: ") {
				t.Errorf("%s: %+v, events %v", path, res, h.all)
			}
			continue
		}
		if len(res.Items) != 1 || len(images) != 1 || h.steps() != "" || res.Output != "attached local image path" {
			t.Errorf("%s: %+v, events %v", path, res, h.all)
			continue
		}
		must.Equal(t, path, shown[path], res.Items[0].(protocol.MessageItem).Content[0].ImageURL)
	}
}
