package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// attack is one way to run, write or hide something without an approval.
type attack struct {
	name string
	// try plays the attack and returns what it achieved, "" for nothing.
	try func(v *victim) string
	// native reports whether Codex does itself what is attacked, so that only the native engine is.
	native bool
}

const (
	confined  = "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n"
	untrusted = "approval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\n"
	onRequest = "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n"
)

var attacks = []attack{
	{name: "git in a writable folder of PATH, also for a review", try: func(v *victim) string {
		v.says(v.command("c1", v.plant(v.path+"/git", v.evil("/usr/bin/git"))))
		v.serve(confined+fmt.Sprintf("\n[sandbox_workspace_write]\nwritable_roots = [%q]\n", v.path), "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.planted("git")
		v.edits()
		v.reviews()
		return v.proven()
	}},
	{name: "git in the folder of another conversation", try: func(v *victim) string {
		v.says(v.command("c1", v.plant("git", v.evil("/usr/bin/git"))))
		v.serve(confined, "calls.full_access = \"allow\" # the attack is what comes after a person's approval\n")
		v.call("codex", map[string]any{"prompt": "go", "cwd": v.path})
		v.planted("git")
		v.edits()
		return v.proven()
	}},
	{name: "git's configuration includes a file of the repository", try: func(v *victim) string {
		v.write(filepath.Join(v.user, ".gitconfig"), fmt.Sprintf("[include]\n\tpath = %s/team.gitconfig\n", v.cwd))
		v.write(filepath.Join(v.cwd, "a.txt"), "one\n")
		servertest.Git(v.t, v.cwd, "add", ".")
		servertest.Git(v.t, v.cwd, "commit", "-qm", "a")
		v.write(filepath.Join(v.path, "filter"), v.evil("cat"))
		v.says(v.command("c1", fmt.Sprintf("printf '[filter \"x\"]\\n\\tclean = %[1]s\\n\\tsmudge = %[1]s\\n\\trequired = true\\n[diff]\\n\\texternal = %[1]s\\n[diff \"x\"]\\n\\ttextconv = %[1]s\\n[core]\\n\\tfsmonitor = %[1]s\\n' > team.gitconfig; echo '* filter=x diff=x' > .gitattributes; echo two >> a.txt", filepath.Join(v.path, "filter"))))
		v.serve(confined, "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.edits()
		v.reviews()
		return v.proven()
	}},
	{name: "the program of an MCP server", try: func(v *victim) string {
		v.write(filepath.Join(v.path, "server"), "#!/bin/sh\nexit 1\n")
		v.says(v.command("c1", v.plant(v.path+"/server", v.evil("true"))))
		v.serve(confined+fmt.Sprintf("\n[mcp_servers.tool]\ncommand = \"server\"\n[sandbox_workspace_write]\nwritable_roots = [%q]\n", v.path), "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.planted("server")
		v.edits()
		return v.proven()
	}, native: true},
	{name: "an MCP server in the repository", try: func(v *victim) string {
		v.write(filepath.Join(v.cwd, "server.sh"), v.evil("true"))
		v.serve(confined+"\n[mcp_servers.tool]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n", "")
		v.edits()
		return v.proven()
	}, native: true},
	{name: "a session approval of a script that changes", try: func(v *victim) string {
		return v.changing("approved_for_session", "find . -name build.sh -exec sh {} +", "sh build.s?")
	}},
	{name: "a lasting rule of a script that changes", try: func(v *victim) string {
		return v.changing("approved_always", "sh ./build.sh", "touch -c made")
	}},
	{name: "a rule that lets a planted program out", try: func(v *victim) string {
		v.write(filepath.Join(v.cwd, "sub", "file"), "text")
		servertest.Git(v.t, filepath.Join(v.cwd, "sub"), "init", "-q")
		servertest.Git(v.t, filepath.Join(v.cwd, "sub"), "config", "core.fsmonitor", filepath.Join(v.path, "monitor"))
		v.write(filepath.Join(v.path, "monitor"), v.evil("true"))
		v.says(v.outside("c1", "sub", "git", "status"))
		v.serve(onRequest, "[approvals]\nallow = [[\"git\", \"status\"]]\n")
		v.call("codex", map[string]any{"prompt": "go"})
		return v.proven()
	}},
	{name: "a working folder that becomes a link while it is asked about", try: func(v *victim) string {
		return v.replaced("", func(other string) map[string]any { return map[string]any{"cwd": other} })
	}},
	{name: "a writable folder that becomes a link while it is asked about", try: func(v *victim) string {
		return v.replaced("../other/", func(other string) map[string]any {
			return map[string]any{"config": map[string]any{"sandbox_workspace_write": map[string]any{"writable_roots": []string{other}}}}
		})
	}},
	{name: "control characters in what a client shows", try: func(v *victim) string {
		v.says(v.command("c1", "printf '\x1b]2;PWNED\x07 \u202etxt.exe\r\nrm'"))
		v.answer = func(map[string]any) string { return `{"action":"accept"}` }
		v.serve(untrusted, "")
		v.call("codex", map[string]any{"prompt": "list \x1b[31mRED \u202e"})
		v.call("codex-list", map[string]any{"cwd": "*"})
		return v.shownRaw()
	}},
}

// TestEndToEndAttacks plays every attack.
func TestEndToEndAttacks(t *testing.T) {
	t.Parallel()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			boxtest.Need(t)
			if got := a.try(newVictim(t, false)); got != "" {
				t.Error(got)
			}
		})
	}
}

// victim is a server with a hostile model, and a client whose person answers its questions.
type victim struct {
	*process
	folders
	t     *testing.T
	model *providertest.Server
	// bridge reports whether the engine is the installed Codex.
	bridge bool

	// answer answers a question by its text. Nil declines all.
	answer func(question map[string]any) string
	asked  []string // the messages of the questions
}

// newVictim makes the folders: home, user, cwd, which is a repository, and tools, whose programs PATH finds first.
func newVictim(t *testing.T, bridge bool) *victim {
	t.Helper()
	top := boxtest.Outside(t)
	f := foldersIn(t, top)
	f.path = filepath.Join(top, "tools")
	must.OK(t, os.Mkdir(f.path, 0o755))
	v := &victim{folders: f, t: t, bridge: bridge, model: providertest.New()}
	t.Cleanup(v.model.Close)
	servertest.Git(t, v.cwd, "init", "-q")
	servertest.Git(t, v.cwd, "commit", "-q", "--allow-empty", "-m", "begin")
	return v
}

// proof is a file that no command may write unless a person approves it.
func (v *victim) proof() string { return filepath.Join(v.user, "proof") }

// evil is a script that leaves the proof that it ran outside of every sandbox, with the name of
// the process that started it, and then behaves like a program.
func (v *victim) evil(program string) string {
	return fmt.Sprintf("#!/bin/sh\ncat /proc/$PPID/comm >> %s 2>/dev/null\nexec %s \"$@\"\n", v.proof(), program)
}

func (v *victim) write(file, text string) {
	v.t.Helper()
	must.OK(v.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(v.t, testenv.WriteProgram(file, []byte(text)))
}

// serve starts the server with lines for both configurations.
func (v *victim) serve(config, settings string) {
	v.t.Helper()
	top, tables, _ := strings.Cut(config, "\n[")
	if tables != "" {
		tables = "[" + tables
	}
	v.write(filepath.Join(v.home, "config.toml"), servertest.CodexConfig(v.model.BaseURL(), top)+tables)
	v.write(filepath.Join(v.home, "codex-mcp.toml"), settings)
	// In each folder that commands may write the server looks for repositories before each of them, and /tmp may be large.
	args := []string{"--engine", "native", "-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"}
	if v.bridge {
		args = []string{"--engine", "codex", "--codex", os.Getenv("CODEX_BIN")}
	}
	v.process = start(v.t, v.folders, args...)
	v.hello(`{"elicitation":{}}`)
}

// call calls a tool, answers its questions, and returns the id of its thread.
func (v *victim) call(tool string, arguments map[string]any) (thread string) {
	v.t.Helper()
	v.process.call(tool, arguments)
	for {
		m := v.await("an answer", func(m map[string]any) bool {
			return m["method"] == "elicitation/create" || m["method"] == nil && m["id"] == float64(v.calls)
		})
		if m["method"] == nil {
			_, thread = result(m)
			return thread
		}
		question, answer := m["params"].(map[string]any), `{"action":"decline"}`
		v.asked = append(v.asked, fmt.Sprint(question["message"]))
		if v.answer != nil {
			answer = v.answer(question)
		}
		v.send(line(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": json.RawMessage(answer)}))
	}
}

// shownRaw returns a text for people with a raw control character.
func (v *victim) shownRaw() string {
	raw := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
		})
	}
	for _, q := range v.asked {
		if raw(q) {
			return fmt.Sprintf("the question %q", q)
		}
	}
	for _, m := range v.messages() {
		params, _ := m["params"].(map[string]any)
		if text, _ := params["message"].(string); m["method"] == "notifications/progress" && (raw(text) || strings.Contains(text, "\n")) {
			return fmt.Sprintf("the progress %q", text)
		}
	}
	if text := v.errors(); raw(text) {
		return fmt.Sprintf("the log %q", text)
	}
	return ""
}

// proven reports who started a planted program outside of the sandbox. What Codex starts
// itself does not count: this server does not choose it.
func (v *victim) proven() string {
	text, err := os.ReadFile(v.proof())
	starters := strings.Fields(string(text))
	if v.bridge {
		starters = slices.DeleteFunc(starters, func(name string) bool { return name == "codex" || strings.HasPrefix(name, "tokio") })
	}
	if err != nil || v.bridge && len(starters) == 0 {
		return ""
	}
	return fmt.Sprintf("a planted program was started by %q", starters)
}

// planted checks that the command of the model could write a program into the folder that PATH names first.
func (v *victim) planted(name string) {
	v.t.Helper()
	if text, err := os.ReadFile(filepath.Join(v.path, name)); err != nil || !strings.Contains(string(text), v.proof()) {
		v.t.Fatalf("nothing is planted: %q, %v", text, err)
	}
}

// edits runs a turn that changes a file, so that the server compares the repository.
func (v *victim) edits() {
	v.t.Helper()
	v.says(v.command("e1", "echo text > edited.txt"))
	v.call("codex", map[string]any{"prompt": "edit"})
}

// reviews runs a review, for which the server looks at the repository.
func (v *victim) reviews() {
	v.t.Helper()
	v.says(providertest.Say(`{"findings":[]}`))
	v.call("codex-review", map[string]any{"target": "uncommitted"})
}

// changing runs commands that a decision for more than once allows, and again when the program that each runs has another text.
func (v *victim) changing(decision string, commands ...string) string {
	v.serve(untrusted, "[approvals]\nschema = \"decision\"\n")
	for i, command := range commands {
		v.write(filepath.Join(v.cwd, "build.sh"), "true\n")
		v.answer = func(map[string]any) string {
			return fmt.Sprintf(`{"action":"accept","content":{"decision":%q}}`, decision)
		}
		v.says(v.command(fmt.Sprint("first", i), command))
		thread := v.call("codex", map[string]any{"prompt": "go"})
		v.write(filepath.Join(v.cwd, "build.sh"), "touch "+v.proof()+"\n")
		v.answer = nil
		asked := len(v.asked)
		v.says(v.command(fmt.Sprint("again", i), command))
		v.call("codex-reply", map[string]any{"prompt": "again", "threadId": thread})
		if _, err := os.Lstat(v.proof()); err == nil {
			return command + " ran another program outside the sandbox"
		}
		if again := v.asked[asked:]; command == "touch -c made" && len(again) > 0 && !v.bridge {
			v.t.Errorf("a rule that was accepted does not answer the same question: %q", again)
		}
	}
	return ""
}

// replaced puts a link in the place of the folder that a call names, while the question about it is open.
func (v *victim) replaced(at string, arguments func(other string) map[string]any) string {
	other, target := filepath.Join(filepath.Dir(v.cwd), "other"), filepath.Join(filepath.Dir(v.cwd), "target")
	must.OK(v.t, os.Mkdir(other, 0o755), os.Mkdir(target, 0o755))
	v.says(v.command("c1", "echo x > "+at+"proof"))
	v.answer = func(map[string]any) string {
		must.OK(v.t, os.Rename(other, other+"2"), os.Symlink(target, other))
		time.Sleep(2 * approve.Instant)
		return `{"action":"accept"}`
	}
	v.serve(confined, "")
	call := arguments(other)
	call["prompt"] = "go"
	v.call("codex", call)
	if _, err := os.Lstat(filepath.Join(target, "proof")); err == nil {
		return "a command wrote where the link leads"
	}
	if len(v.asked) != 1 {
		return fmt.Sprintf("asked %q", v.asked)
	}
	return ""
}

// says makes the model answer with a call, or with a text alone, and end its turn.
func (v *victim) says(first providertest.Turn) {
	if len(first.ToolCalls) == 0 {
		v.model.Add(first)
		return
	}
	v.model.Add(first, providertest.Say("done"))
}

// command returns a call that runs a shell script in the sandbox.
func (v *victim) command(id, text string) providertest.Turn {
	if v.bridge {
		return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": text}))
	}
	return providertest.Call(providertest.Shell(id, "sh", "-c", text))
}

// outside returns a call that asks to run argv outside of the sandbox.
func (v *victim) outside(id, dir string, argv ...string) providertest.Turn {
	if v.bridge {
		return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": strings.Join(argv, " "), "workdir": filepath.Join(v.cwd, dir),
			"sandbox_permissions": "require_escalated", "justification": "to see"}))
	}
	return providertest.Call(providertest.Tool(id, "shell", map[string]any{"command": argv, "workdir": filepath.Join(v.cwd, dir), "with_escalated_permissions": true, "justification": "to see"}))
}

// plant returns a script that writes a program.
func (v *victim) plant(file, text string) string {
	return fmt.Sprintf("cat > %[1]s <<'END'\n%[2]sEND\nchmod +x %[1]s", file, text)
}
