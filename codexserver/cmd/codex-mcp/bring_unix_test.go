//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// checkout is a repository, and a conversation that has worked in a worktree of it.
type checkout struct {
	t         *testing.T
	home, dir string
	worktree  *git.Worktree
}

const broughtID = "01997f2e-8c41-7d3a-9b52-6f0e4d1c8a37"

// newCheckout makes a checkout, in whose worktree a script works. What that leaves is committed.
func newCheckout(t *testing.T, work string) *checkout {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	c := &checkout{t: t, home: filepath.Join(top, "home"), dir: filepath.Join(top, "w")}
	must.OK(t, os.Mkdir(c.home, 0o700), os.Mkdir(c.dir, 0o755))
	c.sh(c.dir, `git init -q -b main --template=; printf 'one\ntwo\n' >a; echo b >b; mkdir sub; echo c >sub/c; echo ignored >.gitignore
git add -A; git commit -q -m first`)
	c.worktree, err = git.Scratch{Dir: filepath.Join(c.home, "tmp")}.AddWorktree(t.Context(), c.dir, git.Worktrees(c.home))
	must.OK(t, err, c.worktree.Owner(broughtID))
	c.sh(c.worktree.Path, work+"\ngit add -A; git commit -q --allow-empty -m work")
	write(t, filepath.Join(c.home, "sessions", "2026", "01", "01", "rollout-2026-01-01T00-00-00-"+broughtID+".jsonl"), fmt.Sprintf(
		`{"timestamp":"x","type":"session_meta","payload":{"id":%q,"timestamp":"2026-01-01T00:00:00Z","cwd":%q,"originator":"x","cli_version":"1","instructions":null}}`+"\n"+
			`{"timestamp":"x","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`+"\n",
		broughtID, c.worktree.Cwd))
	return c
}

// sh runs a script, in which git commits as somebody and runs nothing by itself.
func (c *checkout) sh(dir, script string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x",
		"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// answerer is a terminal at which somebody types an answer when a question is there.
type answerer struct {
	mu     sync.Mutex
	screen bytes.Buffer
	asked  chan struct{} // closed by the first question
	over   chan struct{} // closed at the end
	once   sync.Once
	answer func() string
}

func (a *answerer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.screen.Write(p)
	if bytes.HasSuffix(a.screen.Bytes(), []byte("\n  > ")) {
		a.once.Do(func() { close(a.asked) })
	}
	return len(p), nil
}

func (a *answerer) Read(p []byte) (int, error) {
	select {
	case <-a.asked:
	case <-a.over:
	}
	if a.answer == nil {
		<-a.over
		return 0, io.EOF
	}
	n := copy(p, a.answer())
	a.answer = nil
	return n, nil
}

func (a *answerer) Flush() error { return nil }

// bring runs --bring at a terminal at which somebody answers. It returns what the screen showed, and the exit status.
func (c *checkout) bring(answer func() string, flags ...string) (screen string, code int) {
	c.t.Helper()
	a := &answerer{asked: make(chan struct{}), over: make(chan struct{}), answer: answer}
	defer close(a.over)
	console := &terminal.Console{Out: a, Err: a, OutTerminal: true, ErrTerminal: true, Input: a, Width: func() int { return 0 }}
	return c.bringOn(a, console, flags...)
}

func (c *checkout) bringOn(a *answerer, console *terminal.Console, flags ...string) (screen string, code int) {
	c.t.Helper()
	o, err := parse("codex-mcp", append([]string{"ask", "--resume", broughtID, "--bring"}, flags...), io.Discard)
	must.OK(c.t, err)
	ask := &askOptions{options: o, resume: broughtID}
	code = ask.bringOn(c.t.Context(), console, func(name string) string {
		return map[string]string{"CODEX_HOME": c.home}[name]
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.screen.String(), code
}

// tree returns what is in the checkout besides .git: each file with its mode and content.
func (c *checkout) tree() string {
	return c.sh(c.dir, `find . -path ./.git -prune -o \( -type f -o -type l \) -print0 | LC_ALL=C sort -z | xargs -0 stat -c '%A %n' ; git --no-optional-locks diff; git --no-optional-locks status --porcelain --ignored`)
}

// TestBring brings work into checkouts in several states.
func TestBring(t *testing.T) {
	t.Parallel()
	yes := func() string { return "y\n" }
	const work = "printf 'one\\nTWO\\n' >a; git rm -q b; echo n >sub/new; chmod +x sub/c"
	const whole = " M a\n D b\n M sub/c\n?? sub/new\n"
	for name, tt := range map[string]struct {
		work   string // in the worktree; by default the above
		lay    string // in the checkout
		during string // there, while the question is open
		answer string
		config string   // codex-mcp.toml
		want   []string // on the screen
		code   int
		status string // of the checkout afterwards, * for no change
		after  string // a test that holds then
	}{
		"clean": {want: []string{
			"edit a  +1 -1\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +TWO\n", "\ndelete b  +0 -1\n  -b\n", "edit sub/c  +0 -0: it becomes executable\n", "new file sub/new  +1 -0\n  +n\n",
			"◆ Allow codex-mcp to apply proposed code changes?", "brought 4 files of codex/",
		}, status: whole, after: `test -x sub/c; test "$(cat a)" = "$(printf 'one\nTWO')"; git diff --cached --exit-code`},
		"denied":  {answer: "n not now\n", want: []string{"✗ denied, with your reason", "nothing was brought: it was denied"}, code: 1, status: "*"},
		"stopped": {answer: "s\n", want: []string{"■ stopped", "nothing was brought: interrupted"}, code: 130, status: "*"},
		"files that it does not touch": {lay: "echo mine >mine; echo x >>.gitignore; echo y >sub/y; git add sub/y", want: []string{"brought 4 files"},
			status: " M .gitignore\n M a\n D b\n M sub/c\nA  sub/y\n?? mine\n?? sub/new\n"},
		"files that it touches": {lay: "echo mine >a; echo c2 >sub/c", want: []string{
			"these files are not as HEAD has them; commit, stash or move them first:\n  a\n  sub/c\n"}, code: 1, status: "*"},
		"an untracked file in the way": {lay: "echo mine >sub/new", want: []string{"not as HEAD has them", "\n  sub/new\n"}, code: 1, status: "*"},
		"an ignored file in the way": {work: "git rm -q .gitignore; echo x >ignored", lay: "echo mine >ignored", want: []string{
			"not as HEAD has them", "\n  ignored\n"}, code: 1, status: "*"},
		"a folder in the way":             {work: "echo x >d", lay: "mkdir d; echo x >d/x", want: []string{"not as HEAD has them", "\n  d\n"}, code: 1, status: "*"},
		"a file in the place of a folder": {work: "mkdir d; echo x >d/x", lay: "echo x >d", want: []string{"not as HEAD has them", "\n  d/x\n"}, code: 1, status: "*"},
		"a link in the place of a folder": {work: "echo x >sub/c; mkdir ig; echo x >ig/x", lay: "mv sub ../out; ln -s ../out sub; ln -s ../out ig", want: []string{
			"not as HEAD has them", "\n  ig/x\n  sub/c\n"}, code: 1, status: "*", after: `test "$(cat ../out/c)" = c; test ! -e ../out/x`},
		"a link in the place of a file":    {work: "echo x >a", lay: "mv a ../out; ln -s ../out a", want: []string{"not as HEAD has them", "\n  a\n"}, code: 1, status: "*"},
		"a file becomes a folder":          {work: "git rm -q b; mkdir b; echo x >b/x", want: []string{"not as HEAD has them", "\n  b/x\n"}, code: 1, status: "*"},
		"a conflict":                       {lay: "echo other >a; git commit -qam x", want: []string{"nothing was brought: it conflicts with HEAD:\n  a\n"}, code: 1, status: "*"},
		"HEAD moved on, on another branch": {lay: "git checkout -q -b other; printf 'ONE\\ntwo\\n' >z; git add z; git commit -qm x", want: []string{"brought 4 files"}, status: whole},
		"a cherry-pick":                    {lay: "git update-ref CHERRY_PICK_HEAD HEAD", want: []string{"is in the middle of a cherry-pick; end that first"}, code: 1, status: "*"},
		"changed while the question is open": {during: "echo mine >>a", want: []string{"✓ approved", "nothing was brought: ", "/a was changed after"}, code: 1,
			status: " M a\n", after: "test -e b; test ! -e sub/new; test ! -x sub/c"},
		"made while the question is open": {during: "echo mine >sub/new", want: []string{"✓ approved", "sub/new was changed after"}, code: 1,
			status: "?? sub/new\n", after: `test "$(cat sub/new)" = mine`},
		"a folder replaced while the question is open": {during: "mv sub ../out; ln -s ../out sub", want: []string{"✓ approved", "nothing was brought: "}, code: 1,
			status: " D sub/c\n?? sub\n", after: "test ! -e ../out/new"},
		"it is there":           {lay: "git merge -q --squash $(git for-each-ref --format='%(refname)' refs/heads/codex); git reset -q", want: []string{"there is nothing to bring"}, status: "*"},
		"a part of it is there": {lay: "echo n >sub/new", want: []string{"brought 3 files"}, status: whole},
		"names":                 {work: "echo x >\"$(printf 'e\\033[2Jv\\342\\200\\256il\\nx')\"; echo '\x1b[31mred\u202e' >t", want: []string{`new file $'e\x1b[2Jv\u{202e}il\nx'  +1 -0`, `+\x1b[31mred\u{202e}`, "brought 2 files"}, status: "?? \"e\\033[2Jv\\342\\200\\256il\\nx\"\n?? t\n"},
		"what others run": {work: "mkdir .vscode .github .github/workflows; echo {} >.vscode/tasks.json; echo x >.envrc; echo {} >package.json; echo x >.github/workflows/x.yml; echo x >.gitmodules; mkdir bare; cd bare; mkdir objects refs; echo x >config; echo x >objects/x; echo x >refs/x; cd ..",
			want: []string{"new file .vscode/tasks.json  +1 -0: other programs run it or obey it\n", "new file .envrc  +1 -0: other programs run it or obey it\n",
				"new file package.json  +1 -0: other programs run it\n", "new file .github/workflows/x.yml  +1 -0: other programs run it\n", "new file .gitmodules  +1 -0: other programs run it\n",
				"new file bare/config  +1 -0: other programs run it or obey it\n"}, answer: "n\n", code: 1, status: "*"},
		"what is no text": {work: "printf 'a\\377' >bin; printf '\\377' >b", want: []string{
			"new file bin  +0 -0: not text, 2 bytes, SHA-256 8dd06b5ab6", "replace b  +0 -1: not text, 1 bytes, SHA-256 a8100ae6aa"}, status: " M b\n?? bin\n", after: `test "$(od -An -tx1 bin)" = " 61 ff"`},
		"hard links": {work: "echo x >a", lay: "ln a ../other", want: []string{"edit a  +1 -2: it has other names (hard links), which change too"}, status: " M a\n"},
		"what is withheld": {config: "[sandbox]\ndeny_read = [\"**/.env\"]\n", work: "echo canary >.env; mkdir d; echo canary >d/.env; echo x >a",
			want: []string{"Left out, because the configuration withholds it: .env, d/.env", "brought 1 file of"}, status: " M a\n"},
		"a link":        {work: "ln -s /etc/passwd l; echo x >a", want: []string{"nothing was brought: git must merge links and submodules:\n  l\n"}, code: 1, status: "*"},
		"too much text": {work: "yes 0123456789 | head -c 5000000 >t", want: []string{"its changes are more text than a question shows", "git merge --squash codex/"}, code: 1, status: "*"},
		"a backslash":   {work: `echo x >'x\..\..\y'`, want: []string{"no working tree may have such a file"}, code: 1, status: "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.work == "" {
				tt.work = work
			}
			c := newCheckout(t, tt.work)
			if tt.config != "" {
				write(t, filepath.Join(c.home, "codex-mcp.toml"), tt.config)
			}
			c.sh(c.dir, tt.lay)
			head, before := c.sh(c.dir, "git rev-parse HEAD; git ls-files --stage"), c.tree()
			asked := false
			screen, code := c.bring(func() string {
				asked = true
				c.sh(c.dir, tt.during)
				if tt.answer != "" {
					return tt.answer
				}
				return yes()
			})
			must.Equal(t, "the exit status with\n"+screen, tt.code, code)
			for _, want := range tt.want {
				if !strings.Contains(screen, want) {
					t.Errorf("the screen lacks %q:\n%s", want, screen)
				}
			}
			if i := strings.IndexFunc(screen, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r == '\u202e' }); i >= 0 {
				t.Errorf("the screen has %q", screen[i:])
			}
			if strings.Contains(screen, "canary") {
				t.Errorf("the screen has what is withheld:\n%s", screen)
			}
			if tt.status == "*" {
				must.Equal(t, "the checkout", before, c.tree())
			} else {
				must.Equal(t, "the checkout", tt.status, c.sh(c.dir, "git status --porcelain --untracked-files=all"))
			}
			must.Equal(t, "HEAD and the index", head, c.sh(c.dir, "git rev-parse HEAD; git ls-files --stage"))
			c.sh(c.dir, tt.after)
			if asked != strings.Contains(screen, "◆") {
				t.Errorf("asked %v:\n%s", asked, screen)
			}
			if left, _ := os.ReadDir(filepath.Join(c.home, "tmp")); len(left) > 0 { // it may not be there
				t.Errorf("left: %v", left)
			}
			var events []string
			log, _ := os.ReadFile(filepath.Join(c.home, "codex-mcp", "approvals.log")) // or none
			for text := range bytes.Lines(log) {
				l := must.Get(record.Parse(text))(t)
				events = append(events, strings.TrimSpace(string(l.Event)+" "+l.Decision+" "+l.By))
				must.Equal(t, "the thread", broughtID, l.Thread)
			}
			recorded := map[int]string{0: "decided approved terminal\nbegins\nends", 130: ""}[code]
			if code == 1 && asked {
				recorded = "decided denied terminal"
				if tt.answer == "" {
					recorded = "decided approved terminal\nbegins\nends"
				}
			}
			if !asked {
				recorded = ""
			}
			must.Equal(t, "the record", recorded, strings.Join(events, "\n"))
		})
	}
}

// TestBringRefused has no terminal, no worktree, and records that do not fit.
func TestBringRefused(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, "echo x >a")
	before := c.tree()
	nobody := &answerer{asked: make(chan struct{})}
	screen, code := c.bringOn(nobody, &terminal.Console{Out: nobody, Err: nobody, Width: func() int { return 0 }})
	must.Equal(t, "without a terminal", "codex-mcp: nothing was brought: there is no terminal to ask on\n1", fmt.Sprint(screen, code))

	must.OK(t, c.worktree.Owner("another"))
	screen, code = c.bring(nil)
	must.Equal(t, "another conversation's", fmt.Sprintf("codex-mcp: nothing was brought: the worktree %s is another conversation's\n1", c.worktree.Path), fmt.Sprint(screen, code))

	must.OK(t, os.Remove(c.worktree.Path+".json"))
	screen, code = c.bring(nil)
	must.Equal(t, "no record", "codex-mcp: nothing was brought: the conversation "+broughtID+" has no worktree of this server\n1", fmt.Sprint(screen, code))

	must.OK(t, os.RemoveAll(filepath.Join(c.home, "sessions")))
	screen, code = c.bring(nil)
	if code != statusWrong || !strings.Contains(screen, "nothing was brought: conversation "+broughtID) {
		t.Errorf("exit status %d: %s", code, screen)
	}
	must.Equal(t, "the checkout", before, c.tree())
}

// TestBringUnrecorded approves what cannot be recorded, which does not count.
func TestBringUnrecorded(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, "echo x >a")
	write(t, filepath.Join(c.home, "codex-mcp"), "no folder")
	before := c.tree()
	screen, code := c.bring(func() string { return "y\n" })
	if code != terminal.StatusImpossible || !regexp.MustCompile("nothing was brought: the approval could not be recorded, so it does not count: ").MatchString(screen) {
		t.Errorf("exit status %d: %s", code, screen)
	}
	must.Equal(t, "the checkout", before, c.tree())
}
