package box_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// gitEnv is the environment of git in these tests.
func gitEnv(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
}

// repository makes a repository with a remote, a branch of it, a worktree and a submodule, in the folder repo of another one.
func repository(t *testing.T) (base, repo string) {
	t.Helper()
	base = tree(t, "outer/", "home/", "outside/")
	repo = filepath.Join(base, "outer/a/repo")
	cmd := exec.Command("bash", "-ec", `git init -q --bare remote; git init -q -b main sub; git -C sub commit -qm x --allow-empty
mkdir -p outer/a; git init -q -b main outer/a/repo; cd outer/a/repo; echo x >file; git add .; git commit -qm one
git -c protocol.file.allow=always submodule --quiet add ../../../sub sub; git commit -qm sub; git remote add origin ../../../remote
git push -q origin main main:feature; git fetch -q; git worktree add -q ../tree; echo '[core]' >>.git/config`)
	cmd.Dir, cmd.Env = base, gitEnv(base+"/home")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return base, repo
}

// TestPlants tries to change what git runs, in each way. Without a sandbox each succeeds.
func TestPlants(t *testing.T) {
	boxtest.NeedRooms(t)
	template, _ := repository(t)
	for name, script := range map[string]string{
		"a hook":                           `echo evil >.git/hooks/pre-commit`,
		"a hook that is there":             `echo evil >>.git/hooks/pre-commit.sample`,
		"the configuration":                `git config core.fsmonitor evil`,
		"the configuration, by itself":     `echo evil >>.git/config`,
		"one in its place":                 `echo evil >x; mv x .git/config`,
		"a link in its place":              `ln -sf /dev/null .git/config`,
		"no configuration":                 `rm .git/config`,
		"the configuration of a submodule": `git config -f .git/modules/sub/config core.fsmonitor evil`,
		"a hook of a submodule":            `echo evil >.git/modules/sub/hooks/post-checkout`,
		"the folder of a worktree":         `echo evil >.git/worktrees/tree/commondir`,
		"other hooks":                      `mv .git/hooks .git/old && mkdir .git/hooks && echo evil >.git/hooks/pre-commit`,
		"other hooks, exchanged":           `mkdir x; python3 -c 'import ctypes; exit(ctypes.CDLL(None).renameat2(-100, b"x", -100, b".git/hooks", 2) != 0)' && echo evil >.git/hooks/pre-commit`,
		"another git folder":               `mv .git .old && cp -r .old .git && echo evil >.git/hooks/pre-commit`,
		"another repository":               `cd .. && mv repo old && cp -r old repo && echo evil >repo/.git/hooks/pre-commit`,
		"another folder above it":          `cd ../.. && mv a b && cp -r b a && echo evil >a/repo/.git/hooks/pre-commit`,
		"by a descriptor":                  `exec 3<.git && echo evil >/proc/self/fd/3/hooks/pre-commit`,
		"by the root of the process":       `echo evil >/proc/self/root$PWD/.git/hooks/pre-commit`,
		"by a hard link":                   `ln .git/config linked && echo evil >>linked`,
		"another modules folder":           `mv .git/modules .git/m && cp -r .git/m .git/modules && echo evil >.git/modules/sub/hooks/post-checkout`,
		"not mounted any more":             `(umount .git/config || umount -l .git/config || unshare -Urm umount .git/config); echo evil >>.git/config`,
		"writable again":                   `(mount -o remount,bind,rw .git/config || unshare -Urm mount -o remount,bind,rw .git/config); echo evil >>.git/config`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, confined := range []bool{true, false} {
				base := tree(t) // a copy, which begins as the template did
				must.OK(t, exec.Command("cp", "-a", template+"/.", base).Run())
				repo := filepath.Join(base, "outer/a/repo")
				spec := run.Spec{Argv: []string{"bash", "-c", script}, Dir: repo, Env: gitEnv(base + "/home"), Timeout: time.Minute}
				if confined {
					spec.Confinement = confine(t, write(base+"/outer"), repo)
				}
				git := snapshot(t, base)
				res := ran(t, spec)
				if now := snapshot(t, base); (git == now) != confined {
					t.Errorf("confined %t: unchanged %t: %s", confined, git == now, res.Aggregated)
				}
			}
		})
	}
}

// TestSecondMount tries to change what git runs by another mount of the same folder, of its parent and of the git folder.
func TestSecondMount(t *testing.T) {
	boxtest.NeedRooms(t)
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
	}, func(t *testing.T) {
		must.OK(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		base, repo := repository(t)
		covered := must.Get(os.MkdirTemp("/dev/shm", "test"))(t) // whose mount commands do not see
		t.Cleanup(func() { must.Check(t, os.Remove(covered)) })
		for i, from := range []string{repo, base + "/outer", repo + "/.git", repo} {
			to := filepath.Join(base, "outside", strconv.Itoa(i)+" é")
			if i == 3 {
				to = covered
			}
			must.OK(t, os.MkdirAll(to, 0o700))
			must.OK(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
			t.Cleanup(func() { must.Check(t, unix.Unmount(to, unix.MNT_DETACH)) })
		}
		for _, tt := range []struct{ name, script string }{
			{"the working folder", `echo evil >>"$1/outside/0 é/.git/config"`},
			{"a folder above it", `echo evil >>"$1/outside/1 é/a/repo/.git/config"`},
			{"the git folder", `echo evil >>"$1/outside/2 é/config"`},
			{"hooks", `echo evil >"$1/outside/1 é/a/repo/.git/hooks/pre-commit"`},
			// Last: the mounts show the old one afterwards.
			{"renamed", `cd "$1/outside/1 é/a/repo" && mv .git old && cp -r old .git && echo evil >.git/config`},
		} {
			for _, confined := range []bool{true, false} {
				spec := run.Spec{Argv: []string{"bash", "-c", tt.script, "sh", base}, Dir: repo, Env: gitEnv(base + "/home"), Timeout: time.Minute}
				if confined {
					spec.Confinement = confine(t, write(), repo)
				}
				before := snapshot(t, base)
				res := ran(t, spec)
				if after := snapshot(t, base); (before == after) != confined {
					t.Errorf("%s, confined %t: unchanged %t: %s", tt.name, confined, before == after, res.Aggregated)
				}
			}
		}
	})
}

// snapshot returns what git runs in the repositories of [repository], by its paths.
func snapshot(t *testing.T, base string) string {
	t.Helper()
	all := ""
	for _, names := range []string{"config", "hooks/*", "modules/sub/config", "modules/sub/hooks/*", "worktrees/*/commondir"} {
		found, err := filepath.Glob(filepath.Join(base, "outer/a/repo/.git", names))
		must.OK(t, err)
		for _, name := range found {
			content, err := os.ReadFile(name)
			all += fmt.Sprintln(name, string(content), err) // it may be something else
		}
	}
	return all
}

// TestGitWorks uses git beside what is fixed. What writes into its configuration fails, and says so.
func TestGitWorks(t *testing.T) {
	boxtest.NeedRooms(t)
	base, repo := repository(t)
	for _, tt := range []struct {
		script string
		code   int
		words  string // in the output
	}{
		{"echo y >>file; git commit -qam two", 0, ""},
		{"git branch other; git branch", 0, ""},
		{"echo z >>file; git stash -q; git stash pop -q; git checkout -q file", 0, ""},
		{"git switch -qc more; git switch -q main", 0, ""},
		{"git worktree add -q ../w; git worktree remove ../w", 0, ""},
		{"git merge -q more; git rebase -q more; git tag t; git reset -q --hard HEAD^; git gc -q", 0, ""},
		{"git -C sub commit -qm x --allow-empty; git add sub; git commit -qm sub", 0, ""},
		{"git rm -q file; git commit -qm gone; mkdir d; git mv .gitmodules d/x; git reset -q --hard", 0, ""},
		{"git config user.name b", 4, "Device or resource busy"},
		{"git branch -m more again", 128, "could not"},
		{"git branch -D other; ! git rev-parse -q --verify other", 0, "could not write config file"},
		{"git branch --set-upstream-to=origin/main main", 0, "could not write config file"},
	} {
		res := ran(t, run.Spec{
			Argv: []string{"bash", "-c", tt.script}, Dir: repo, Env: gitEnv(base + "/home"), Timeout: time.Minute,
			Confinement: confine(t, write(base+"/outer"), repo),
		})
		if res.ExitCode != tt.code || !strings.Contains(res.Aggregated, tt.words) || tt.words == "" && res.Stderr != "" {
			t.Errorf("%s: %d %s", tt.script, res.ExitCode, res.Aggregated)
		}
	}
}

// TestReplacedOutside has somebody outside replace the configuration while a command waits to write it.
func TestReplacedOutside(t *testing.T) {
	boxtest.NeedRooms(t)
	base, repo := repository(t)
	spec := run.Spec{
		Argv: []string{"bash", "-c", `touch ready; while :; do echo '[evil]' >>.git/config; sleep 0.2; done 2>/dev/null`},
		Dir:  repo, Env: gitEnv(base + "/home"), Timeout: time.Minute, Confinement: confine(t, write(), repo),
	}
	done := make(chan run.Result)
	go func() {
		res, _ := boxtest.Starter(t).Run(t.Context(), spec, nil)
		done <- res
	}()
	for {
		if _, err := os.Stat(repo + "/ready"); err == nil {
			break
		}
	}
	cmd := exec.Command("git", "config", "user.name", "b")
	cmd.Dir, cmd.Env = repo, gitEnv(base+"/home")
	must.OK(t, cmd.Run())
	res := <-done
	if res.TimedOut || !strings.Contains(res.Aggregated, "/.git/config was replaced outside of the sandbox") {
		t.Errorf("%+v", res)
	}
}
