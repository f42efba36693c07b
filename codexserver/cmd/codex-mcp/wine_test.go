//go:build wine && linux

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var wine, driveC = os.Getenv("CODEX_NPM") + "/wine", os.Getenv("CODEX_NPM") + "/wine/prefix/drive_c"

// windows returns the name of a path on the drive C.
func windows(path ...string) string {
	return `C:` + strings.ReplaceAll(strings.TrimPrefix(filepath.Join(path...), driveC), "/", `\`)
}

// rig is the program for Windows in the Wine of .ci/wine, with a model on this system. Its folders are on the drive C.
type rig struct {
	*testing.T
	f      folders
	model  *providertest.Server
	p      *process
	thread string
	before int            // requests before the turn
	asked  map[int]string // the questions about each of the turn's calls
}

func plug(t *testing.T, policy, sandbox string) *rig {
	t.Helper()
	t.Parallel()
	top := must.Get(os.MkdirTemp(driveC, "rig"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	r := &rig{T: t, f: foldersIn(t, top), model: providertest.New()}
	t.Cleanup(r.model.Close)
	config := strings.Replace(fmt.Sprintf(configOf, r.model.BaseURL()), "danger-full-access", sandbox, 1)
	writeConfig(t, r.f.home, fmt.Sprintf("approval_policy = %q\n", policy)+config)
	return r
}

// command returns a command line of the program, with further variables.
func (r *rig) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("env", slices.Concat(env, []string{"CODEX_HOME=" + windows(r.f.home), wine + "/wine", wine + "/tmp/codex-mcp.exe"}, args)...)
	cmd.Dir = r.f.cwd
	return cmd
}

func (r *rig) serve(env ...string) {
	r.Helper()
	r.p = launch(r.T, r.f, r.command(env, "--engine", "native", "--shared"))
	r.p.hello(`{"elicitation":{}}`)
}

// act is a call of the model: what the question about it has, "" if there is none, and what its output has.
type act struct {
	call        providertest.ToolCall
	asked, want string
}

// begin begins a turn in which the model makes these calls, if there are any, and says "done".
func (r *rig) begin(arguments map[string]any, acts ...act) {
	r.Helper()
	for i, a := range acts {
		a.call.ID = fmt.Sprint("c", i)
		r.model.Add(providertest.Call(a.call))
	}
	if acts != nil {
		r.model.Add(providertest.Say("done"))
	}
	r.before, r.asked = len(r.model.Requests()), map[int]string{}
	tool, all := "codex", map[string]any{"prompt": "go", "cwd": windows(r.f.cwd)}
	if r.thread != "" {
		tool, all = "codex-reply", map[string]any{"prompt": "go", "threadId": r.thread}
	}
	maps.Copy(all, arguments)
	r.p.call(tool, all)
}

// step answers one question, or returns the turn's result.
func (r *rig) step(action string) string {
	r.Helper()
	m := r.p.await("a question or an answer", func(m map[string]any) bool {
		return m["method"] == "elicitation/create" || m["method"] == nil && m["id"] == float64(r.p.calls)
	})
	if m["method"] == nil {
		_, r.thread = result(m)
		return line(m)
	}
	r.asked[len(r.model.Requests())-r.before-1] += m["params"].(map[string]any)["message"].(string)
	r.p.send(line(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{"action": action}}))
	return ""
}

// turn runs a turn, and returns its result.
func (r *rig) turn(action string, arguments map[string]any, acts ...act) (result string) {
	r.Helper()
	r.begin(arguments, acts...)
	for result == "" {
		result = r.step(action)
	}
	requests := append(r.model.Requests()[r.before:], make([]providertest.Request, len(acts)+1)...)
	for i, a := range acts {
		output, asked := requests[i+1].LastToolOutput(), r.asked[i]
		if !strings.Contains(output, a.want) || !strings.Contains(asked, a.asked) || (a.asked == "") != (asked == "") {
			r.Errorf("%s: the output %q, want %q; the question %q, want %q", a.call.Arguments, output, a.want, asked, a.asked)
		}
	}
	return result
}

func (r *rig) has(text string, wants ...string) {
	r.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			r.Errorf("it lacks %q: %s", want, text)
		}
	}
}

// put writes files of the working folder, and files checks which there are.
func (r *rig) put(text string, names ...string) {
	for _, name := range names {
		write(r.T, filepath.Join(r.f.cwd, name), text)
	}
}

func (r *rig) files(want ...string) {
	r.Helper()
	out := must.Get(exec.Command("find", r.f.cwd, "-type", "f", "-printf", "%P\n").Output())(r)
	must.Equal(r, "files", strings.Join(want, "\n"), strings.Join(slices.Sorted(strings.FieldsSeq(string(out))), "\n"))
}

// runs makes the model run child by words, and waits until it has made the file up. Then gone waits until no process has its name.
func (r *rig) runs(how string) {
	r.Helper()
	r.put(child(r.T), "child.exe")
	words := append(strings.Fields(how), `.\child.exe`, "live", windows(r.f.cwd, "up"))
	if how == "leave" {
		words = []string{`.\child.exe`, "leave", windows(r.f.cwd, "up")}
	}
	r.begin(nil, act{call: providertest.Tool("", "shell", map[string]any{"command": words, "timeout_ms": 10_000})})
	r.step("accept")
	until(r.T, "the command does not run", func() bool { _, err := os.Stat(r.f.cwd + "/up"); return err == nil })
}

func (r *rig) gone() {
	r.Helper()
	grep := "grep -qs '" + filepath.Base(filepath.Dir(r.f.cwd)) + ".work.[u]p' /proc/[0-9]*/cmdline"
	until(r.T, "a process is left", func() bool { return exec.Command("sh", "-c", grep).Run() != nil })
}

func child(t *testing.T) string { return string(must.Get(os.ReadFile(wine + "/tmp/child.exe"))(t)) }

func tool(name string, members ...string) providertest.ToolCall {
	arguments := map[string]any{}
	for pair := range slices.Chunk(members, 2) {
		arguments[pair[0]] = pair[1]
	}
	return providertest.Tool("", name, arguments)
}

func sh(words ...string) providertest.ToolCall { return providertest.Shell("", words...) }

func keep(path string) providertest.ToolCall { return tool("write", "path", path, "content", "x\n") }

// TestWine runs whole sessions of the Windows build.
func TestWine(t *testing.T) {
	for name, pkg := range map[string]string{"codex-mcp.exe": ".", "child.exe": "./testdata/wine"} {
		build := exec.Command("env", "GOOS=windows", "go", "build", "-buildvcs=false", "-o", wine+"/tmp/"+name, pkg)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// Wine's services live as long as a program does, and keep the output of the first one.
	first := exec.Command(wine+"/wine", wine+"/tmp/child.exe", "live", windows(driveC, "up"))
	_ = os.Remove(driveC + "/up")
	must.OK(t, first.Start())
	t.Cleanup(func() { _, _, _ = first.Process.Kill(), first.Wait(), os.Remove(driveC+"/up") })
	until(t, "Wine does not start", func() bool { _, err := os.Stat(driveC + "/up"); return err == nil })
	for name, test := range map[string]func(*testing.T){
		"commands": wineCommands, "files": wineFiles, "ends": wineEnds, "console": wineConsole, "servers": wineServers, "lacks": wineLacks,
	} {
		t.Run(name, test)
	}
}

func wineCommands(t *testing.T) {
	r := plug(t, "on-request", "read-only")
	r.put(child(t), "child.exe", "hostname.exe", "sub/child.exe")
	r.put("@echo off\r\necho one=%1\r\n", "show.bat", "show.cmd")
	r.serve("OPENAI_API_KEY=sk-secret", "Github_Token=t-secret", "anthropic_api_key=a-secret")
	words := []string{"a b", `q"q`, `back\`, `tr\"x`, "", "%PATH%", "^caret", "a&b", "umlaut-ä", "日本"}
	r.turn("accept", nil,
		act{sh("cmd", "/c", "echo hello & cd"), "`cmd /c 'echo hello & cd'`", "hello \r\n" + windows(r.f.cwd)},
		act{sh(append([]string{`.\child.exe`}, words...)...), "It may start", fmt.Sprintf("%q", words)},
		act{sh(`sub\child.exe`, "x"), "\\work\\sub`, where commands can write", `["x"]`},
		act{sh("child.exe", "x"), "child.exe", "not found in PATH"}, // where cmd.exe looks first
		act{sh("hostname"), "`hostname`", "\r\n"},
		act{tool("shell", "command", "echo one line"), "echo one line", "one line"},
		act{sh(`.\show.bat`, "safe"), "show.bat", "one=safe"},
		act{sh(`.\show.bat`, `x"&echo INJECTED>pwned.txt&"`), "", "is a batch file, and cmd.exe reads '\"'"},
		act{sh(`.\show.cmd`, "a&echo INJECTED>pwned.txt"), "", "is a batch file, and cmd.exe reads '&'"},
		act{sh(`.\show.cmd`, "%USERNAME%"), "", "is a batch file, and cmd.exe reads '%'"},
		act{sh("cmd", "/c", "set"), "set", "PATHEXT="},
		act{sh("cmd", "/c", "echo %SYSTEMROOT% %COMSPEC% %TEMP%"), "echo", `C:\windows C:\windows\system32\cmd.exe C:\`})
	for i, request := range r.model.Requests() {
		if text := string(request.Body); strings.Contains(text, "-secret") || strings.Contains(text, "bash") {
			t.Errorf("request %d has a key, or another system's shell: %s", i, text)
		}
	}
	r.has(string(r.model.Requests()[0].Body), "Windows", "cmd")
	r.has(r.turn("decline", nil, act{sh("cmd", "/c", "echo no> no.txt"), "no.txt", "declined"}), `"refused":[{`)
	r.files("child.exe", "hostname.exe", "show.bat", "show.cmd", "sub/child.exe")
	_ = r.p.stdin.Close()
	must.Equal(t, "exit status", 0, r.p.wait())
}

func wineFiles(t *testing.T) {
	r := plug(t, "on-request", "workspace-write")
	r.put("x\n", ".git/x", ".codex/x", ".vscode/x", "sub/x")
	r.put("one\r\ntwo\r\nthree\r\n", "a.txt", "b.txt")
	r.serve()
	const network, outside = "a name of the network or of a device", "outside of the working folder"
	acts := []act{
		{tool("edit", "path", `\\evil.example\share\y`, "old", "a", "new", "b"), "", network},
		{tool("view_image", "path", `\\evil.example\share\y.png`), "", network},
		{tool("shell", "command", "cd", "workdir", `\\evil.example\share`), "", network},
		{tool("read", "path", `C:\windows\win.ini`), "it reads outside of the working folder", "declined"},
		{tool("apply_patch", "input", "*** Begin Patch\n*** Add File: C:\\y\n+x\n*** End Patch\n"), `C:\y`, "declined"},
	}
	for _, group := range []struct{ asked, want, paths string }{
		{"no command may write it", "declined", `.git\y|.GIT\y|sub\..\.git\y`},
		{"other programs run it", "declined", `.git.\y|.git \y|GIT~1\y|.vscode\y|.VSCODE\y|VSCODE~1\y|.mcp.json|.mcp.json.|.codex\config.toml|` + ".git\u200c\\y"},
		{"", outside, `.git::$INDEX_ALLOCATION\y|.mcp.json::$DATA|codex-mcp.toml:ads|a.txt:y|a.txt::$DATA|sub\PRN|LPT¹`},
		{"", outside, `..\y|C:\y|C:y|\\?\C:\y|\??\C:\y|sub\..\..\y|..\ok\..\y`},
		{"", network, `\\.\C:\y|\\localhost\C$\y|\\?\UNC\localhost\C$\y|\\.\PIPE\y|\\evil.example\share\y`},
		{"", "path escapes from parent", `NUL|nul.txt|COM1|AUX.md`},
		{"", "CreateFile", `CON|CONIN$|a<b.txt|a?b|...\y`},
	} {
		for path := range strings.SplitSeq(group.paths, "|") {
			acts = append(acts, act{keep(path), group.asked, group.want})
		}
	}
	r.has(r.turn("decline", nil, acts...), `"changes":[]`)
	r.files(".codex/x", ".git/x", ".vscode/x", "a.txt", "b.txt", "sub/x")
	if out := must.Get(exec.Command("find", driveC, filepath.Dir(r.f.cwd), "-maxdepth", "1", "-name", "y").Output())(t); len(out) > 0 {
		t.Errorf("outside: %s", out)
	}
	r.turn("decline", nil,
		act{keep(`sub\deep\new.txt`), "", "Success"}, act{keep("sub/deep/new2.txt"), "", "Success"}, act{keep(`x y\z.txt`), "", "Success"},
		act{tool("edit", "path", "a.txt", "old", "two", "new", "2\nzwei"), "", "Success"},
		act{tool("apply_patch", "input", "*** Begin Patch\n*** Update File: b.txt\n@@\n-two\n+2\n*** End Patch\n"), "", "Success"},
		act{tool("read", "path", "a.txt"), "", "lines end with CR LF"}, act{tool("list", "path", "."), "", "x y/\n"}, act{tool("search", "pattern", "zwei"), "", "a.txt:3:zwei"})
	must.Equal(t, "a.txt", "one\r\n2\r\nzwei\r\nthree\r\n", string(must.Get(os.ReadFile(r.f.cwd+"/a.txt"))(t)))
	must.Equal(t, "b.txt", "one\r\n2\r\nthree\r\n", string(must.Get(os.ReadFile(r.f.cwd+"/b.txt"))(t)))
	must.OK(t, os.RemoveAll(r.f.cwd), os.Mkdir(r.f.cwd, 0o755))
	cwd := windows(r.f.cwd)
	for _, name := range []string{cwd, "c" + cwd[1:], strings.ToUpper(cwd), strings.ReplaceAll(cwd, `\`, "/"), cwd + `\`, `\\?\` + cwd, r.f.cwd} {
		r.thread = ""
		r.turn("accept", map[string]any{"cwd": name}, act{keep("y"), "", "Success"}, act{sh("cmd", "/c", "del y"), "del y", ""})
		r.files()
	}
}

// wineEnds ends commands, and what they have started.
func wineEnds(t *testing.T) {
	kill, leave := func(r *rig) { _ = r.p.cmd.Process.Kill() }, func(r *rig) { _ = r.p.stdin.Close() }
	limit := func(r *rig) { r.step("") } // or the command's own end
	cancel := func(r *rig) {
		r.p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	}
	for name, tt := range map[string]struct {
		end func(*rig)
		how string
	}{
		"limit": {limit, ""}, "limit of a parent": {limit, "cmd /c"}, "left": {limit, "leave"},
		"cancel": {cancel, ""}, "cancel of a parent": {cancel, "cmd /c"}, "kill": {kill, ""}, "kill of a parent": {kill, "cmd /c"}, "end": {leave, "cmd /c"},
	} {
		t.Run(name, func(t *testing.T) {
			r := plug(t, "on-request", "read-only")
			r.serve()
			r.runs(tt.how)
			tt.end(r)
			r.gone()
		})
	}
}

func wineConsole(t *testing.T) {
	made, ping := sh("cmd", "/c", "echo x> y.txt"), sh("ping", "-n", "60", "127.0.0.1")
	for name, tt := range map[string]struct {
		call    providertest.ToolCall
		typed   string // for the question, and for the command
		code    int
		screen  string
		changed []string
	}{
		"yes":                      {made, "y\r", 0, "exit 0", []string{"y.txt"}},
		"no":                       {made, "n\r", 0, "not run: cmd /c 'echo x> y.txt' (declined)", nil},
		"ctrl-C during a question": {made, "\x03", 130, "interrupted", nil},
		"ctrl-C during a command":  {ping, "y\r \x03", 130, "interrupted", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := plug(t, "on-request", "read-only")
			r.model.Add(providertest.Call(tt.call), providertest.Say("done"))
			tty, screen := newTerminal(t)
			d := &desk{person: &person{t: t}, cmd: r.command([]string{"TERM=xterm"}, "ask", "--engine", "native", "do it"), tty: tty, read: make(chan struct{})}
			d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr, d.cmd.SysProcAttr = screen, screen, screen, &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must.OK(t, d.cmd.Start())
			screen.Close()
			go func() {
				defer close(d.read)
				_, _ = io.Copy(&d.screen, tty)
			}()
			for i, keys := range strings.Split(tt.typed, " ") {
				shows := []string{"y once   n deny", "$ ping"}[i]
				until(t, "it does not show "+shows, func() bool { return strings.Contains(d.shown(), shows) })
				d.types(keys)
			}
			r.has(d.ends(tt.code), tt.screen, windows(r.f.cwd))
			r.files(tt.changed...)
		})
	}
}

// wineServers has two servers of one home, and one after a kill.
func wineServers(t *testing.T) {
	r := plug(t, "on-request", "read-only")
	r.serve()
	first, wait := r.p, make(chan struct{})
	r.model.Add(providertest.Turn{Wait: wait, Text: []string{"from behind"}})
	r.has(r.turn("", map[string]any{"background": true}), "in the background")
	thread := r.thread
	r.serve()
	r.has(r.turn("", nil), "is running elsewhere")
	close(wait)
	first.call("codex-wait", map[string]any{"threadIds": []string{thread}})
	r.has(line(first.answer()), "from behind")
	r.runs("")
	_ = r.p.cmd.Process.Kill()
	r.p.wait()
	r.serve()
	r.p.call("codex-list", map[string]any{"cwd": "*"})
	r.has(line(r.p.answer()), thread)
	r.has(r.turn("", nil), "done")
	r.has(string(r.model.Requests()[len(r.model.Requests())-1].Body), "aborted")
}

// wineLacks shows that the program says what it cannot do here.
func wineLacks(t *testing.T) {
	r := plug(t, "never", "workspace-write")
	r.put(child(t), "../path/git.exe")
	r.put("ref: refs/heads/main\n", ".git/HEAD")
	r.put("[core]\n\trepositoryformatversion = 0\n", ".git/config")
	r.put(strings.Repeat("1", 40)+"\n", ".git/refs/heads/main", ".git/objects/x")
	env := "WINEPATH=" + windows(r.f.cwd, "../path")
	r.serve(env)
	r.has(r.p.errors(), "this process serves its client itself", "is outside of your profile")
	r.has(r.turn("", nil, act{sh("cmd", "/c", "echo x> x.txt"), "", "there is no sandbox on this system"}, act{keep("y.txt"), "", "Success"}),
		`"changesFrom":"events"`, `"changes":[{"added":1,"by":"patch","kind":"add","path":"y.txt","removed":0}]`)
	r.thread = ""
	r.has(r.turn("", map[string]any{"worktree": true}), "no sandbox on this system")
	r.thread = ""
	r.model.Close()
	now := time.Now()
	if r.has(r.turn("", nil), "no model server listens"); time.Since(now) > 10*time.Second {
		t.Errorf("said after %v", time.Since(now))
	}
	out, _ := r.command([]string{env}, "page").CombinedOutput()
	r.has(string(out), "codex-mcp: page: this system does not tell")
}
