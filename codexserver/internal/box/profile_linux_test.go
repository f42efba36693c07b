package box_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// denying is a profile that denies a file by its name, one by a pattern, and a folder, and nothing else.
func denying(base string) *permission.Profile {
	return &permission.Profile{Name: "a test", Rules: []permission.Rule{
		{Path: permission.Workspace + "/secret.txt", Access: permission.Deny},
		{Path: permission.Workspace + "/pkg/app/key.txt", Access: permission.Deny},
		{Path: permission.Workspace + "/**/.env", Access: permission.Deny},
		{Path: permission.Workspace + "/later.txt", Access: permission.Deny},
		{Path: base + "/home/.ssh", Access: permission.Deny},
	}}
}

var usual = []string{"PATH=/usr/bin:/bin"}

// tries are ways to read what is denied, or to have the next command read it. Without the profile each prints the canary.
var tries = map[string]string{
	"cat":                            `cat secret.txt`,
	"cp":                             `cp secret.txt x; cat x`,
	"a hard link":                    `ln secret.txt x; cat x`,
	"a symbolic link":                `ln -s secret.txt x; cat x`,
	"tar":                            `tar -cf x.tar secret.txt; tar -xOf x.tar secret.txt`,
	"dd":                             `dd if=secret.txt status=none`,
	"by a redirection":               `cat <secret.txt`,
	"/proc/self/root":                `cat /proc/self/root$PWD/secret.txt`,
	"/proc/self/cwd":                 `cat /proc/self/cwd/secret.txt`,
	"a folder of the home":           `cat ~/.ssh/id`,
	"that folder by a link":          `ln -s ~/.ssh x; cat x/id`,
	"search":                         `grep -rh canary ~/.ssh secret.txt pkg .env sub`,
	"find":                           `find . -name '*.txt' -exec cat {} +; find ~ -name id -exec cat {} +`,
	"rename it":                      `mv secret.txt x; cat x`,
	"a pattern":                      `cat sub/deep/.env`,
	"a pattern, its folder renamed":  `mv sub other; cat other/deep/.env`,
	"a pattern, its folder and then": `mv sub other; true`,
	"rename the folder":              `mv pkg x; cat x/app/key.txt`,
	"rename the nearest folder":      `mv pkg/app x; cat x/key.txt`,
	"and have the next read it":      `mv pkg x; true`,
	"move a folder out":              `mv sub "$TMPDIR/out"; cat "$TMPDIR"/out/deep/.env`,
	"unmount":                        `umount secret.txt; cat secret.txt`,
	"a mount of its own":             `unshare -Urm sh -c 'umount secret.txt; cat secret.txt'`,
	"exchange":                       `python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"secret.txt", -100, b"file", 2)'; cat file`,
	"in the background":              `(sleep 0.1; cat secret.txt) & wait`,
}

// TestDeniedFiles has no command read what a profile denies, nor the next one: neither in the sandbox nor beyond it.
func TestDeniedFiles(t *testing.T) {
	boxtest.NeedRooms(t)
	read := `cat secret.txt pkg/app/key.txt .env sub/deep/.env other/deep/.env x/key.txt x/app/key.txt x file ~/.ssh/id "$TMPDIR"/out/deep/.env`
	for name, script := range tries {
		for _, where := range []string{"inside", "beyond", "outside"} {
			base := tree(t, "work/secret.txt="+canary, "work/pkg/app/key.txt="+canary, "work/.env="+canary, "work/sub/deep/.env="+canary,
				"work/file=x", "home/.ssh/id="+canary, "tmp/")
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base + "/home", "TMPDIR=" + base + "/tmp"}
			s := box.New(box.Options{Profile: denying(base)})
			var said strings.Builder
			for _, line := range []string{script, read} {
				spec := run.Spec{Argv: []string{"bash", "-c", line}, Dir: base + "/work", Env: env, Timeout: time.Minute}
				switch where {
				case "inside":
					spec.Confinement = must.Get(s.Confine(write(base+"/tmp"), base+"/work", env))(t)
				case "beyond":
					spec.Confinement = must.Get(s.Beyond(base+"/work", env))(t)
				}
				said.WriteString(ran(t, spec).Aggregated)
			}
			if got, want := strings.Contains(said.String(), canary), where == "outside"; got != want {
				t.Errorf("%s, %s: it is read: %t\n%s", name, where, got, said.String())
			}
		}
	}
}

// TestOpenNames has what stays open, as SECURITY.md says: another name of a denied file, and what git has of it.
func TestOpenNames(t *testing.T) {
	boxtest.NeedRooms(t)
	base := tree(t, "work/secret.txt="+canary, "home/")
	must.OK(t, os.Link(base+"/work/secret.txt", base+"/work/name"))
	spec := run.Spec{Argv: []string{"cat", "name"}, Dir: base + "/work", Env: usual}
	spec.Confinement = must.Get(box.New(box.Options{Profile: denying(base)}).Confine(write(), base+"/work", nil))(t)
	must.Equal(t, "read by another name", canary, ran(t, spec).Stdout)
}

// TestDeniedInWorktree denies in the main working tree what is denied in another one, also when a command has changed what says
// where it is.
func TestDeniedInWorktree(t *testing.T) {
	boxtest.NeedRooms(t)
	rules := []permission.Rule{{Path: permission.Workspace + "/**/.env", Access: permission.Deny}}
	for want, profile := range map[int]*permission.Profile{0: {Name: "a test", Rules: rules}, 4: nil} {
		base, repo := repository(t)
		dir := base + "/outer/a/tree"
		must.OK(t, os.WriteFile(repo+"/.env", []byte(canary), 0o600), os.WriteFile(dir+"/.env", []byte(canary), 0o600))
		s, read := box.New(box.Options{Profile: profile}), 0
		for range 2 {
			spec := run.Spec{Argv: []string{"sh", "-c", "cat .env ../repo/.env; echo x >.git"}, Dir: dir, Env: usual}
			spec.Confinement = must.Get(s.Confine(write(), dir, nil))(t)
			read += strings.Count(ran(t, spec).Stdout, canary)
		}
		must.Equal(t, "files that were read", want, read)
	}
}

// TestLaterNames ends a command when a denied name comes to be, whoever makes it.
func TestLaterNames(t *testing.T) {
	boxtest.NeedRooms(t)
	for name, script := range map[string]string{
		"the command":                `echo x >later.txt; sleep 60`,
		"the command, for a moment":  `echo x >later.txt; rm later.txt`,
		"the command, by a new name": `echo x >x; mv x later.txt; sleep 60`,
		"somebody else":              `touch ready; while [ ! -e later.txt ]; do :; done; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			base := tree(t, "work/", "home/")
			spec := run.Spec{Argv: []string{"sh", "-c", script}, Dir: base + "/work", Env: usual, Timeout: 30 * time.Second}
			spec.Confinement = must.Get(box.New(box.Options{Profile: denying(base)}).Confine(write(), base+"/work", nil))(t)
			if name == "somebody else" {
				go func() {
					for {
						if _, err := os.Stat(base + "/work/ready"); err == nil {
							_ = os.WriteFile(base+"/work/later.txt", []byte(canary), 0o600)
							return
						}
						time.Sleep(time.Millisecond)
					}
				}()
			}
			res := ran(t, spec)
			if !strings.Contains(res.Stderr, "later.txt has come to be") || res.TimedOut {
				t.Errorf("exit code %d: %s", res.ExitCode, res.Stderr)
			}
		})
	}
}

// TestUnkept has profiles that a command could get round, so nothing runs.
func TestUnkept(t *testing.T) {
	boxtest.NeedRooms(t)
	base := tree(t, "work/real/p.txt=x", "work/link -> real", "home/")
	for name, rules := range map[string][]permission.Rule{
		"is a symbolic link in a writable folder": {{Key: "k", Path: permission.Workspace + "/link", Access: permission.Deny}},
		"matches more than 10000 names":           {{Key: "k", Path: base + "/many/*", Access: permission.Deny}},
	} {
		if strings.Contains(name, "10000") {
			must.OK(t, os.Mkdir(base+"/many", 0o700))
			for i := range 10_001 {
				must.OK(t, os.WriteFile(filepath.Join(base, "many", fmt.Sprint(i)), nil, 0o600))
			}
		}
		c := must.Get(box.New(box.Options{Profile: &permission.Profile{Rules: rules}}).Confine(write(), base+"/work", nil))(t)
		_, err := boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: []string{"true"}, Dir: base + "/work", Env: usual, Confinement: c}, nil)
		if err == nil || !strings.Contains(err.Error(), "k: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyDenied starts a command with as many masks as there may be.
func TestManyDenied(t *testing.T) {
	boxtest.NeedRooms(t)
	base, n := tree(t, "work/many/"), 2000
	for i := range n {
		must.OK(t, os.WriteFile(filepath.Join(base, "work/many", fmt.Sprintf("%04d.key", i)), []byte(canary), 0o600))
	}
	p := &permission.Profile{Name: "a test", Rules: []permission.Rule{{Key: "k", Path: permission.Workspace + "/many/*.key", Access: permission.Deny}}}
	spec := run.Spec{Argv: []string{"sh", "-c", "cat many/*; ls many | wc -l"}, Dir: base + "/work", Env: usual}
	spec.Confinement = must.Get(box.New(box.Options{Profile: p}).Confine(write(), base+"/work", nil))(t)
	res := ran(t, spec)
	if strings.Contains(res.Aggregated, canary) || res.Stdout != fmt.Sprintln(n) {
		t.Errorf("exit code %d: %.500s", res.ExitCode, res.Aggregated)
	}
}

// BenchmarkProfile starts a command in a repository without a profile, and with one of 20 entries.
func BenchmarkProfile(b *testing.B) {
	base := b.TempDir()
	boxtest.Lay(b, base, ".git/config=x", ".git/hooks/pre-commit=x")
	p := &permission.Profile{Name: "a benchmark", Whole: true, Rules: []permission.Rule{
		{Path: permission.Root, Access: permission.Read}, {Path: permission.Workspace, Access: permission.Write},
	}}
	for i := range 18 {
		name := filepath.Join(base, fmt.Sprint(i))
		must.OK(b, os.WriteFile(name, nil, 0o600))
		p.Rules = append(p.Rules, permission.Rule{Path: name, Access: []permission.Access{permission.Deny, permission.Read}[i%2]})
	}
	for name, o := range map[string]box.Options{"without": {}, "with 20 entries": {Profile: p}} {
		b.Run(name, func(b *testing.B) {
			s := box.New(o)
			for b.Loop() {
				c := must.Get(s.Confine(write(), base, nil))(b)
				must.Get(boxtest.Starter(b).Run(b.Context(), run.Spec{Argv: []string{"true"}, Dir: base, Env: usual, Confinement: c}, nil))(b)
			}
		})
	}
}

// TestDeniedFilesAsUser does it as a user, and with folders that the user cannot read until a command changes that.
func TestDeniedFilesAsUser(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.AsUser(t, cmd, os.TempDir()) }, func(t *testing.T) {
		boxtest.NeedRooms(t)
		for _, mode := range []os.FileMode{0o000, 0o300, 0o600} {
			base := tree(t, "work/a/locked/.env="+canary, "work/a/locked/key.txt="+canary, "work/x=x")
			locked := base + "/work/a/locked"
			t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
			p := &permission.Profile{Name: "a test", Rules: []permission.Rule{
				{Key: "k", Path: permission.Workspace + "/**/.env", Access: permission.Deny},
				{Key: "k", Path: permission.Workspace + "/a/locked/key.txt", Access: permission.Deny},
			}}
			for want, profile := range map[int]*permission.Profile{0: p, 2: nil} {
				must.OK(t, os.Chmod(locked, mode))
				const script = `cat x; chmod 700 a/locked; cat a/locked/.env a/locked/key.txt`
				spec := run.Spec{Argv: []string{"sh", "-c", script}, Dir: base + "/work", Env: usual}
				spec.Confinement = must.Get(box.New(box.Options{Profile: profile}).Confine(write(), base+"/work", nil))(t)
				res := ran(t, spec)
				must.Equal(t, mode.String()+": files that were read", want, strings.Count(res.Stdout, canary))
				must.Equal(t, mode.String()+": the rest is read", true, strings.HasPrefix(res.Stdout, "x"))
			}
		}
		if nightly.Tests() {
			TestDeniedFiles(t)
		}
	})
}
