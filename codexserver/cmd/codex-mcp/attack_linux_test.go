package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// attack is one way to run, write or hide something without an approval.
type attack struct {
	name string
	// try plays the attack and returns what it achieved, "" for nothing.
	try func(v *victim) string
	// never has the reason why the attack cannot succeed at an entry or with an engine.
	never map[string]string
}

const (
	confined  = "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n"
	untrusted = "approval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\n"
	onRequest = "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n"
	codexOwn  = "Codex's own sandbox decides, not this server"
)

var attacks = slices.Concat([]attack{
	{name: "git in a writable folder of PATH", try: func(v *victim) string {
		v.says(v.script("c1", v.plant(v.tools()+"/git", v.evil("/usr/bin/git"))))
		v.serve(confined+fmt.Sprintf("\n[sandbox_workspace_write]\nwritable_roots = [%q]\n", v.tools()), "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.edits()
		return v.proven()
	}},
	{name: "git in the folder of another conversation", try: func(v *victim) string {
		v.says(v.script("c1", v.plant("git", v.evil("/usr/bin/git"))))
		v.serve(confined, "")
		v.call("codex", map[string]any{"prompt": "go", "cwd": v.tools()})
		v.edits()
		return v.proven()
	}},
	{name: "git in a writable folder, for a review", try: func(v *victim) string {
		v.says(v.script("c1", v.plant(v.tools()+"/git", v.evil("/usr/bin/git"))))
		v.serve(confined+fmt.Sprintf("\n[sandbox_workspace_write]\nwritable_roots = [%q]\n", v.tools()), "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.says(providertest.Say(`{"findings":[]}`))
		v.call("codex-review", map[string]any{"target": "uncommitted"})
		return v.proven()
	}},
	{name: "git's configuration includes a file of the repository", try: func(v *victim) string {
		v.write(filepath.Join(v.user, ".gitconfig"), fmt.Sprintf("[include]\n\tpath = %s/team.gitconfig\n", v.cwd))
		v.write(filepath.Join(v.cwd, "a.txt"), "one\n")
		servertest.Git(v.t, v.cwd, "add", ".")
		servertest.Git(v.t, v.cwd, "commit", "-qm", "a")
		v.write(filepath.Join(v.tools(), "filter"), v.evil("cat"))
		v.says(v.script("c1", fmt.Sprintf("printf '[filter \"x\"]\\n\\tclean = %[1]s\\n\\tsmudge = %[1]s\\n\\trequired = true\\n[diff]\\n\\texternal = %[1]s\\n[diff \"x\"]\\n\\ttextconv = %[1]s\\n[core]\\n\\tfsmonitor = %[1]s\\n' > team.gitconfig; echo '* filter=x diff=x' > .gitattributes; echo two >> a.txt", filepath.Join(v.tools(), "filter"))))
		v.serve(confined, "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.edits()
		v.says(providertest.Say(`{"findings":[]}`))
		v.call("codex-review", map[string]any{"target": "uncommitted"})
		return v.proven()
	}},
	{name: "the program of an MCP server", try: func(v *victim) string {
		v.write(filepath.Join(v.tools(), "server"), "#!/bin/sh\nexit 1\n")
		v.says(v.script("c1", v.plant(v.tools()+"/server", v.evil("true"))))
		v.serve(confined+fmt.Sprintf("\n[mcp_servers.tool]\ncommand = \"server\"\n[sandbox_workspace_write]\nwritable_roots = [%q]\n", v.tools()), "")
		v.call("codex", map[string]any{"prompt": "go"})
		v.edits()
		return v.proven()
	}, never: map[string]string{"bridge": "Codex starts its MCP servers itself"}},
	{name: "an MCP server in the repository", try: func(v *victim) string {
		v.write(filepath.Join(v.cwd, "server.sh"), v.evil("true"))
		v.serve(confined+"\n[mcp_servers.tool]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n", "")
		v.edits()
		return v.proven()
	}, never: map[string]string{"bridge": "Codex starts its MCP servers itself"}},
	{name: "a session approval of a script that changes", try: func(v *victim) string {
		approve := func(map[string]any) string {
			return `{"action":"accept","content":{"decision":"approved_for_session"}}`
		}
		v.serve(untrusted, "[approvals]\nschema = \"decision\"\n")
		for i, command := range []string{"find . -name build.sh -exec sh {} +", "cd . && sh ./build.sh", "python3 build.py", "perl -- build.pl", "sh build.s?"} {
			v.write(filepath.Join(v.cwd, "build.sh"), "true\n")
			v.write(filepath.Join(v.cwd, "build.py"), "pass\n")
			v.write(filepath.Join(v.cwd, "build.pl"), "1;\n")
			v.answer = approve
			v.says(v.command(fmt.Sprint("first", i), command))
			thread := v.thread(v.call("codex", map[string]any{"prompt": "go"}))
			v.write(filepath.Join(v.cwd, "build.sh"), "touch "+v.proof()+"\n")
			v.write(filepath.Join(v.cwd, "build.py"), "open('"+v.proof()+"', 'w')\n")
			v.write(filepath.Join(v.cwd, "build.pl"), "open(F, '>', '"+v.proof()+"');\n")
			v.answer = nil
			v.says(v.command(fmt.Sprint("again", i), command))
			v.call("codex-reply", map[string]any{"prompt": "again", "threadId": thread})
			if v.exists(v.proof()) != "" {
				return command + " ran another program outside the sandbox"
			}
		}
		return ""
	}},
	{name: "a lasting rule of a script that changes", try: func(v *victim) string {
		always := func(map[string]any) string {
			return `{"action":"accept","content":{"decision":"approved_always"}}`
		}
		v.serve(untrusted, "[approvals]\nschema = \"decision\"\n")
		for i, command := range []string{"python3 build.py", "sh ./build.sh", "touch -c made"} {
			v.write(filepath.Join(v.cwd, "build.sh"), "true\n")
			v.write(filepath.Join(v.cwd, "build.py"), "pass\n")
			v.answer = always
			v.says(v.command(fmt.Sprint("first", i), command))
			thread := v.thread(v.call("codex", map[string]any{"prompt": "go"}))
			v.write(filepath.Join(v.cwd, "build.sh"), "touch "+v.proof()+"\n")
			v.write(filepath.Join(v.cwd, "build.py"), "open('"+v.proof()+"', 'w')\n")
			v.answer = nil
			asked := len(v.asked)
			v.says(v.command(fmt.Sprint("again", i), command))
			v.call("codex-reply", map[string]any{"prompt": "again", "threadId": thread})
			if v.exists(v.proof()) != "" {
				return command + " ran another program outside the sandbox"
			}
			if again := v.asked[asked:]; command == "touch -c made" && len(again) > 0 && !v.bridge {
				v.t.Errorf("a rule that was accepted does not answer the same question: %q", again)
			}
		}
		return ""
	}},
	{name: "a rule that lets a planted program out", try: func(v *victim) string {
		v.write(filepath.Join(v.cwd, "sub", "file"), "text")
		servertest.Git(v.t, filepath.Join(v.cwd, "sub"), "init", "-q")
		servertest.Git(v.t, filepath.Join(v.cwd, "sub"), "config", "core.fsmonitor", filepath.Join(v.tools(), "monitor"))
		v.write(filepath.Join(v.tools(), "monitor"), v.evil("true"))
		v.says(v.outside("c1", "sub", "git", "status"))
		v.serve(onRequest, "[approvals]\nallow = [[\"git\", \"status\"]]\n")
		v.call("codex", map[string]any{"prompt": "go"})
		return v.proven()
	}},
	{name: "writable_roots of a call's config", try: func(v *victim) string {
		v.says(v.script("c1", "echo x > "+v.proof()))
		v.serve(confined, "")
		v.call("codex", map[string]any{"prompt": "go", "config": map[string]any{"sandbox_workspace_write": map[string]any{"writable_roots": []string{v.user}}}})
		return v.proven()
	}, never: map[string]string{"native": neverWritable}},
	{name: "the mode and times of a file, read-only", try: func(v *victim) string {
		file := filepath.Join(v.user, "secret")
		v.write(file, "text")
		past := time.Unix(1_000_000_000, 0)
		if err := os.Chtimes(file, past, past); err != nil {
			v.t.Fatal(err)
		}
		v.says(v.script("c1", fmt.Sprintf("chmod 0777 %[1]s; touch -t 203001010000 %[1]s; chown 12345 %[1]s; setfattr -n user.x -v y %[1]s", file)))
		v.serve("approval_policy = \"never\"\nsandbox_mode = \"read-only\"\n", "")
		if err := os.Chmod(file, 0o600); err != nil {
			v.t.Fatal(err)
		}
		v.call("codex", map[string]any{"prompt": "go"})
		info, err := os.Stat(file)
		if err != nil {
			v.t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || !info.ModTime().Equal(past) || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			return "changed to " + info.Mode().String() + " " + info.ModTime().String()
		}
		return ""
	}, never: map[string]string{"bridge": codexOwn}},
	{name: "a patch through a hard link", try: func(v *victim) string {
		secret := filepath.Join(v.user, "secret")
		v.write(secret, "old\n")
		if err := os.Link(secret, filepath.Join(v.cwd, "notes")); err != nil {
			v.t.Fatal(err)
		}
		v.says(v.patch("c1", "*** Begin Patch\n*** Update File: notes\n@@\n-old\n+new\n*** End Patch\n"))
		v.serve(onRequest, "")
		v.call("codex", map[string]any{"prompt": "go"})
		text, err := os.ReadFile(secret)
		if err != nil {
			v.t.Fatal(err)
		}
		if string(text) != "old\n" {
			return "the other name has " + string(text)
		}
		return ""
	}, never: map[string]string{"bridge": codexOwn}},
	{name: "combining marks that cover a question", try: func(v *victim) string {
		v.says(v.command("c1", "touch made"+strings.Repeat("\u0301", 400)))
		v.serve(untrusted, "")
		v.call("codex", map[string]any{"prompt": "go"})
		if len(v.asked) == 0 {
			return "it was not asked"
		}
		for _, q := range v.asked {
			if strings.Contains(q, strings.Repeat("\u0301", 9)) {
				return fmt.Sprintf("the question has %d marks", strings.Count(q, "\u0301"))
			}
		}
		return ""
	}},
	{name: "control characters in what a client shows", try: func(v *victim) string {
		v.says(v.command("c1", "printf '\x1b]2;PWNED\x07 \u202etxt.exe\r\nrm'"))
		v.answer = func(map[string]any) string { return `{"action":"accept"}` }
		v.serve(untrusted, "")
		v.call("codex", map[string]any{"prompt": "list \x1b[31mRED \u202e"})
		v.call("codex-list", map[string]any{})
		return v.shownRaw()
	}},
}, socketRows(), linkRows())

const neverWritable = "the sandbox never made such a folder writable; the call is refused as well"

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
		result, _ := m["result"].(map[string]any)
		if text, _ := params["message"].(string); m["method"] == "notifications/progress" && (raw(text) || strings.Contains(text, "\n")) {
			return fmt.Sprintf("the progress %q", text)
		}
		for _, holder := range []map[string]any{params, result} {
			if text, _ := holder["statusMessage"].(string); raw(text) || strings.Contains(text, "\n") {
				return fmt.Sprintf("the status %q", text)
			}
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

func (v *victim) exists(file string) string {
	if _, err := os.Lstat(file); err == nil {
		return "it wrote " + filepath.Base(file)
	}
	return ""
}

// edits runs a turn that changes a file, so that the server compares the repository.
func (v *victim) edits() {
	v.t.Helper()
	v.says(v.script("e1", "echo text > edited.txt"))
	v.call("codex", map[string]any{"prompt": "edit"})
}

// says makes the model answer with a call, or with a text alone, and end its turn.
func (v *victim) says(first providertest.Turn) {
	if len(first.ToolCalls) == 0 {
		v.model.Add(first)
		return
	}
	v.model.Add(first, providertest.Say("done"))
}

// script returns a call that runs a shell script in the sandbox.
func (v *victim) script(id, text string) providertest.Turn { return v.command(id, text) }

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

// patch returns a call of the patch tool.
func (v *victim) patch(id, text string) providertest.Turn {
	return providertest.Call(providertest.Shell(id, "apply_patch", text))
}

// plant returns a script that writes a program.
func (v *victim) plant(file, text string) string {
	return fmt.Sprintf("cat > %[1]s <<'END'\n%[2]sEND\nchmod +x %[1]s", file, text)
}

// entries returns the entries at which an attack exists.
func (a attack) entries() []attackEntry {
	return slices.DeleteFunc(slices.Clone(attackEntries), func(e attackEntry) bool { return a.never[e.name] != "" })
}

// places returns where attack n is played with the native engine: with whole at every entry, else at
// two. The two with short, as the gate runs it with the race detector, are others.
func (a attack) places(n int, whole, short bool) (places []attackEntry) {
	entries := a.entries()
	switch {
	case a.never["native"] != "":
		return nil
	case whole:
		return entries
	}
	if short {
		n += 2
	}
	return []attackEntry{entries[n%len(entries)], entries[(n+1)%len(entries)]}
}

// TestEndToEndAttacks plays every attack in the places that it has.
func TestEndToEndAttacks(t *testing.T) {
	t.Parallel()
	for n, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for _, entry := range a.places(n, *whole, testing.Short()) {
				t.Run(entry.name, func(t *testing.T) {
					t.Parallel()
					boxtest.Need(t)
					if got := a.try(newVictim(t, entry, false)); got != "" {
						t.Error(got)
					}
				})
			}
		})
	}
}

// TestAttackPlaces checks that the gate, which runs the attacks twice, plays each of them at every
// entry that it has, and all together at every entry.
func TestAttackPlaces(t *testing.T) {
	together := map[string]bool{}
	for n, a := range attacks {
		want, got := map[string]bool{}, map[string]bool{}
		for _, e := range a.places(n, true, false) {
			want[e.name] = true
		}
		for _, e := range slices.Concat(a.places(n, false, false), a.places(n, false, true)) {
			got[e.name], together[e.name] = true, true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not played everywhere (-whole +gate):\n%s", a.name, diff)
		}
	}
	if len(together) != len(attackEntries) {
		t.Errorf("the attacks are played at %d entries of %d", len(together), len(attackEntries))
	}
}
