package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// pushing is the configuration of a repository that git push may use.
const pushing = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = git@localhost:work.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
`

// repository makes a repository and returns its real path.
func repository(t testing.TB) string {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // without a configuration of git
	t.Setenv("XDG_CONFIG_HOME", "")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, ".git", "objects"), 0o777), os.MkdirAll(filepath.Join(dir, ".git", "refs"), 0o777),
		write(filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n"), write(filepath.Join(dir, ".git", "config"), pushing),
		write(filepath.Join(dir, "x.py"), "pass\n"), write(filepath.Join(dir, "src", "a.go"), "package a\n"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asked returns the question about a command that may run only outside the sandbox, in the
// environment of the test as far as it concerns git.
func asked(dir string, argv []string) *protocol.ExecApprovalRequest {
	env := []string{"PATH=/usr/bin:/bin"}
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "GIT_") || strings.HasPrefix(entry, "HOME=") || strings.HasPrefix(entry, "XDG_CONFIG_HOME=") {
			env = append(env, entry)
		}
	}
	p := policy.Place{Dir: dir, Env: env, Roots: []string{dir}}
	return &protocol.ExecApprovalRequest{Command: argv, Cwd: dir, Placed: true, Content: "sum", Unasked: p.Unasked(argv).Unasked}
}

func write(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o644))
}

// TestProposals shows which rule the question about a command offers: in the sandbox, and
// outside. A slash stands for the words before it, and "-" means none.
func TestProposals(t *testing.T) {
	dir := repository(t)
	const exact, none = "exact", "-"
	for _, tt := range []struct{ command, confined, outside string }{
		{"git push", "git push", "git push"},
		{"git push -u origin main", "git push", "git push"},
		{"git push --tags origin v1.0 main", "git push", "git push"},
		{"git push --force", exact, exact},
		{"git push origin :main", exact, exact},
		{"git push origin +main", exact, exact},
		{"git push --del origin main", exact, exact},
		{"git push upstream", "git push", none},
		{"git push ../other", exact, none},
		{"git push --receive-pack=x", none, none},
		{"git push --rec=x origin", none, none},
		{"git push origin --exec x", none, none},
		{"git push origin -- --EXEC", none, none},
		{"git -c a=b push", none, none},
		{"git --exec-path=x push", none, none},
		{"git p", none, none},
		{"git", none, none},
		{"git rebase --exec x", none, none},
		{"git bisect run x", none, none},
		{"git submodule foreach x", none, none},
		{"git commit -am text", "git commit", none},
		{"git commit -cHEAD", none, none},
		{"git commit --trailer=a", none, none},
		{"git add x.py", "git add", none},
		{"git fetch origin", "git fetch", none},
		{"git fetch --upl=x", none, none},
		{"git switch --create new", "git switch", none},
		{"git switch -c new", none, none},
		{"go test ./...", "go test", none},
		{"go test -run Test -count=1 -v ./...", "go test", none},
		{"go test -exec x ./...", none, none},
		{"go test --exec=x", none, none},
		{"go vet -vettool=x", none, none},
		{"go build -toolexec x", none, none},
		{"go build -o x", exact, none},
		{"go run x.go", none, none},
		{"go generate", none, none},
		{"go -C x test", none, none},
		{"npm run build", "npm run build", none},
		{"npm run build -- --x", exact, none},
		{"npm run", none, none},
		{"npm test", "npm test", none},
		{"npm test --script-shell=x", none, none},
		{"npm test --script-sh x", none, none},
		{"npm install left-pad", exact, none},
		{"npm exec x", none, none},
		{"npx x", none, none},
		{"cargo test -p one -- --nocapture", "cargo test", none},
		{"cargo test --config x", none, none},
		{"cargo test --conf=x", none, none},
		{"cargo +nightly test", none, none},
		{"cargo run", none, none},
		{"pytest -q x.py", "pytest", none},
		{"pytest -p x", none, none},
		{"pytest -qp x", none, none},
		{"pytest @x.py", exact, none},
		{"make", exact, none},
		{"make -C x all", exact, none},
		{"touch made.txt", exact, exact},
		{"python3 x.py", exact, none},
		{"python3 -c pass", none, none},
		{"python3 -m http.server", none, none},
		{"python3 -", none, none},
		{"python3", none, none},
		{"node x.py", exact, none},
		{"node -e 1", none, none},
		{"perl5.36 -e 1", none, none},
		{"awk 1", none, none},
		{"sh x.sh", none, none},
		{"bash -lc|go test ./...", "go test", none},
		{"bash -lc|go test ./... \\| tail -n 5", "go test", none},
		{"bash -lc|go test && go test -v ./src", "go test", none},
		{"bash -lc|go test && go vet", none, none},
		{"bash -lc|cd x && go test", none, none},
		{"bash -lc|git push", "git push", "git push"},
		{"bash -lc|git push && git push --tags", "git push", none},
		{"bash -lc|git push && ls", "git push", none},
		{"bash -lc|git push > x", none, none},
		{"bash -lc|git push $X", none, none},
		{"bash -lc|git push \\`x\\`", none, none},
		{"bash -lc|GIT_SSH_COMMAND=x git push", none, none},
		{"bash -lc|make", exact, none},
		{"bash -lc|make && make install", none, none},
		{"bash -lc|bash -c make", none, none},
		{"A=B git push", none, none},
		{"/usr/bin/git push", none, none},
		{"GIT push", none, none},
		{"git.exe push", none, none},
		{"env git push", none, none}, {"xargs git push", none, none}, {"find x -exec git push", none, none},
		{"sudo git push", none, none}, {"SUDO git push", none, none}, {"nohup git push", none, none},
		{"timeout 5 git push", none, none}, {"nice git push", none, none}, {"ssh host git push", none, none},
		{"watch git push", none, none}, {"parallel git push", none, none}, {"/usr/bin/env git push", none, none},
		{"gtimeout 5 git push", none, none}, {"Env.exe git push", none, none}, {"awk5 x.py", none, none}, {". x.py", none, none},
	} {
		line, script, isScript := strings.Cut(tt.command, "|")
		argv := strings.Fields(line)
		if isScript {
			argv = append(argv, strings.ReplaceAll(script, `\`, ""))
		}
		for confinable, want := range map[bool]string{true: tt.confined, false: tt.outside} {
			q := asked(dir, argv)
			q.Confinable = confinable
			p, err := policy.Explain(q)
			got := none
			switch {
			case err != nil:
			case len(p.Rule.Exact) > 0:
				got = exact
			default:
				got = strings.Join(p.Rule.Prefix, " ")
			}
			if got != want {
				t.Errorf("%s, confinable %t: %s, want %s (%v)", tt.command, confinable, got, want, err)
			}
			if err != nil {
				continue
			}
			if p.Confined != confinable || p.Rule.Outside == confinable || p.Rule.Folder != dir {
				t.Errorf("%s: %+v", tt.command, p)
			}
			if confined, ok := policy.Covers([]policy.Rule{p.Rule}, q); !ok || confined != confinable {
				t.Errorf("%s: its own rule does not allow it", tt.command)
			}
		}
	}
}

// TestWords checks what a person reads.
func TestWords(t *testing.T) {
	for _, tt := range []struct {
		rule policy.Rule
		want string
	}{
		{policy.Rule{Prefix: []string{"go", "test"}, Folder: "/work"}, "commands that begin with `go test` in /work, in the sandbox"},
		{policy.Rule{Prefix: []string{"go", "test"}, Folder: "/work, in the sandbox"}, "commands that begin with `go test` in '/work, in the sandbox', in the sandbox"},
		{policy.Rule{Prefix: []string{"go", "test"}}, "commands that begin with `go test` in every folder, in the sandbox"},
		{policy.Rule{Prefix: []string{"git", "push"}, Folder: "/work", Content: "x", Outside: true}, "commands that begin with `git push` in /work, outside the sandbox, while the configuration of git there is unchanged"},
		{policy.Rule{Exact: []string{"make", "a b"}, Folder: "/work", Content: "x", Outside: true}, "exactly `make 'a b'` in /work, outside the sandbox, while the files that it names are unchanged"},
		{policy.Rule{Patches: "/work/src", Folder: "/work"}, "nothing: an earlier version accepted patches below /work/src"},
	} {
		if got := tt.rule.Words(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestNeverOptions writes every option that a program must never get in many spellings.
func TestNeverOptions(t *testing.T) {
	dir := repository(t)
	n := 0
	for _, command := range policy.ProposableCommands() {
		for _, option := range command.Never {
			spellings := []string{option, option + "=x", strings.ToUpper(option), "-" + option, "-" + option + "=x"}
			if long, ok := strings.CutPrefix(option, "--"); ok {
				spellings = append(spellings, "--"+long[:len(long)-1], "--"+long[:len(long)-1]+"=x", "--no-"+long)
			} else if len(option) == 2 && command.Clusters {
				spellings = append(spellings, option+"x", "-v"+option[1:], "-v"+option[1:]+"x", option+"v")
			}
			for _, word := range spellings {
				for _, args := range [][]string{{word}, {word, "x"}, {"x", word}, {"--", word}, {"x", "--", word, "y"}} {
					argv := append(append([]string{}, command.Words...), args...)
					for _, confinable := range []bool{true, false} {
						n++
						q := &protocol.ExecApprovalRequest{
							Command: argv, Cwd: dir, Placed: true, Content: "sum", Confinable: confinable, Unasked: protocol.Unasked{Sum: "sum", Setup: "sum"},
						}
						if p, ok := policy.Propose(q); ok {
							t.Errorf("%q: %s", argv, p.Words)
						}
					}
				}
			}
		}
	}
	if n < 5000 {
		t.Errorf("only %d commands", n)
	}
}

// TestReach asks in other folders than that of the rule.
func TestReach(t *testing.T) {
	one, two := repository(t), repository(t)
	inner := filepath.Join(one, "src", "inner")
	link := filepath.Join(t.TempDir(), "link")
	for _, err := range []error{write(filepath.Join(inner, ".git", "config"), pushing), os.Symlink(one, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(dir string) *protocol.ExecApprovalRequest {
		return &protocol.ExecApprovalRequest{Command: []string{"go", "test"}, Cwd: dir, Placed: true, Confinable: true}
	}
	here, ok := policy.Propose(ask(one))
	wide, everywhere := here.Everywhere()
	if !ok || !everywhere {
		t.Fatal("no rule is proposed")
	}
	for dir, want := range map[string]bool{
		one: true, filepath.Join(one, "src"): true, link: true, inner: false, two: false, filepath.Dir(one): false, "": false, "src": false,
		filepath.Join(one, "missing"): false,
	} {
		if _, ok := policy.Covers([]policy.Rule{here.Rule}, ask(dir)); ok != want {
			t.Errorf("%s: allowed %t, want %t", dir, ok, want)
		}
		if _, ok := policy.Covers([]policy.Rule{wide.Rule}, ask(dir)); ok != filepath.IsAbs(dir) != (dir == filepath.Join(one, "missing")) {
			t.Errorf("%s: the rule for every folder allows: %t", dir, ok)
		}
	}
	t.Setenv("HOME", one)
	if p, _ := policy.Propose(ask(filepath.Join(one, "src"))); p.Rule.Folder != filepath.Join(one, "src") {
		t.Errorf("a repository in the home directory: %s", p.Rule.Folder)
	}
}

// TestUsersGitConfig checks that git push outside the sandbox depends on the user's own
// configuration.
func TestUsersGitConfig(t *testing.T) {
	dir := repository(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	argv := []string{"git", "push"}
	for text, want := range map[string]bool{
		"[user]\n\tname = x\n[credential]\n\thelper = store\n": true,
		"[submodule]\n\trecurse = true\n":                      false,
		"[push]\n\trecurseSubmodules = on-demand\n":            false,
		"[core] HOOKSPATH = hooks\n":                           false,
		"[includeIf \"gitdir:/work/\"]\n\tpath = x\n":          false,
	} {
		if err := write(filepath.Join(home, ".gitconfig"), text); err != nil {
			t.Fatal(err)
		}
		if _, ok := policy.Propose(asked(dir, argv)); ok != want {
			t.Errorf("%q: proposed %t, want %t", text, ok, want)
		}
	}
	if err := os.Remove(filepath.Join(home, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_COUNT", "1")
	if p, ok := policy.Propose(asked(dir, argv)); ok {
		t.Errorf("with a configuration in the environment: %s", p.Words)
	}
}

// TestGitConfigs tries configurations of a repository for git push outside the sandbox.
func TestGitConfigs(t *testing.T) {
	const origin = "[remote \"origin\"]\n\turl = https://localhost/x.git\n"
	for text, want := range map[string]bool{
		pushing: true,
		origin:  true,
		origin + "\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tgh-resolved = base\n":                              true,
		strings.Replace(origin, "https://localhost/", "ssh://git@localhost:22/", 1):                                   true,
		strings.Replace(origin, "https://localhost/", "git@localhost:x/y/", 1):                                        true,
		origin + "[branch \"a/b\"]\n\tremote = origin\n\tmerge = refs/heads/a/b\n\tvscode-merge-base = origin/main\n": true,
		origin + "[user]\n\tname = A B\n\temail = a@b\n":                                                              true,

		"":                                   false,
		"# text\n" + origin:                  false,
		origin + "\n[user]\n\tname = x\n":    false,
		origin + "[pull]\n\trebase = true\n": false,
		origin + "[CORE]\n\tbare = false\n":  false,
		origin + "[user]\n\tname = x\n\tsigningKey = x\n":                           false,
		origin + "[core]\n\tbare = false sshCommand = x\n":                          false,
		origin + "[core] sshCommand = x\n\tbare = false\n":                          false,
		origin + "[branch \"a\"]\n\tremote = origin\n\tremote = other\n":            false,
		origin + "[branch \"a\"]\n\tremote = origin\n\tdescription = x\n":           false,
		"[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n":      false,
		strings.Replace(origin, "x.git", "x.git # y", 1):                            false,
		strings.Replace(origin, "x.git", "x.git\\\n\tpushurl = /x", 1):              false,
		strings.Replace(origin, "origin", "other", 1):                               false, // a folder could be named origin
		strings.Replace(origin, "https://localhost/", "/tmp/", 1):                   false,
		strings.Replace(origin, "https://localhost/", "../", 1):                     false,
		strings.Replace(origin, "https://localhost/", "file:///tmp/", 1):            false,
		strings.Replace(origin, "https://localhost/", "ext::sh -c x", 1):            false,
		strings.Replace(origin, "https://localhost/", "ssh://-oProxyCommand=x/", 1): false,
		strings.Replace(origin, "https://localhost/", "git@a/b:", 1):                false, // a folder
		strings.Replace(origin, "https://localhost/", "localhost:", 1):              false,
		origin + "\turl = /tmp/x\n":                                                 false,
		origin + "\tpushurl = /tmp/x\n":                                             false,
		origin + "\treceivepack = x\n":                                              false,
		origin + "\tmirror = true\n":                                                false,
		origin + "\tvcs = x\n":                                                      false,
		origin + "[remote]\n\tpushDefault = x\n":                                    false,
		origin + "[branch \"a\"]\n\tremote = /tmp/x\n":                              false,
		origin + "[branch \"a\"]\n\tremote = other\n":                               false,
		origin + "[branch \"a\"]\n\tremote = .\n":                                   false,
		origin + "[branch \"a\"]\n\tpushRemote = origin\n":                          false,
		origin + "[core]\n\tworktree = /tmp\n":                                      false,
		origin + "[core]\n\tbare = true\n":                                          false,
		origin + "[core]\n\tbare\n":                                                 false,
		origin + "[credential]\n\thelper = x\n":                                     false,
		origin + "[url \"/tmp/\"]\n\tinsteadOf = https://localhost/\n":              false,
		origin + "[http]\n\tproxy = x\n":                                            false,
		origin + "[push]\n\tdefault = matching\n":                                   false,
		origin + "[push]\n\trecurseSubmodules = on-demand\n":                        false,
		origin + "[user]\n\tname = a \\\n\tb\n":                                     false,
		origin + "[user]\n\tname = \"a\n":                                           false,
		origin + "[user]\n\tname = a\r[core]\n":                                     false,
		origin + "[user]\n\tname = a\x00b\n":                                        false,
		origin + "[user \"x\"]\n\tname = a\n":                                       false,
		origin + "[core.x]\n\tfilemode = true\n":                                    false,
		"\ufeff" + origin:                                                           false,
		"\turl = x\n" + origin:                                                      false,
		origin + "[include]\n\tpath = x\n":                                          false,
	} {
		dir := repository(t)
		if err := write(filepath.Join(dir, ".git", "config"), text); err != nil {
			t.Fatal(err)
		}
		q := asked(dir, []string{"git", "push"})
		if _, err := policy.Explain(q); (err == nil) != want {
			t.Errorf("%q: %v, want a proposal: %t", text, err, want)
		}
	}
}

// TestExplainScript checks the reason that a person reads about a script of which no program is
// known: it may be fine, but a rule cannot cover its syntax.
func TestExplainScript(t *testing.T) {
	for script, want := range map[string]string{"go test >x": "more than plain commands", "./x": "may change"} {
		q := &protocol.ExecApprovalRequest{Command: []string{"bash", "-lc", script}, Cwd: t.TempDir(), Placed: true, Replaceable: true}
		if _, err := policy.Explain(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
}
