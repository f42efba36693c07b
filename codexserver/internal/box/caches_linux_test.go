package box_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// cached is a conversation whose commands have layers over the caches of a home.
type cached struct {
	*box.Sandbox
	base string
}

func newCached(t *testing.T, limit int64) *cached {
	t.Helper()
	boxtest.NeedRooms(t)
	base := tree(t, "work/", "home/.cache/tool/a=old\n", "home/.cache/link -> ../secret", "home/secret=s", "home/.npm/n=n",
		"home/go/pkg/mod/m@v1/m.go=m", "home/.bashrc=b", "state/")
	module := base + "/home/go/pkg/mod/m@v1"
	must.OK(t, os.Chmod(module, 0o555))
	t.Cleanup(func() { os.Chmod(module, 0o755) })
	layers := box.Layers{Folder: base + "/state/layers", Limit: limit}
	return &cached{box.New(box.Options{Layers: layers}), base}
}

// run runs a script in workspace-write.
func (c *cached) run(t *testing.T, script string) run.Result {
	t.Helper()
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + c.base + "/home", "STATE=" + c.base + "/state/layers", "LC_ALL=C"}
	confinement := must.Get(c.Confine(write(), c.base+"/work", env))(t)
	return ran(t, run.Spec{
		Argv: []string{"bash", "-c", script}, Dir: c.base + "/work", Env: env, Timeout: time.Minute, Confinement: confinement,
	})
}

// files returns what is below a folder, with contents and modes.
func files(t *testing.T, folder string) (all []string) {
	t.Helper()
	must.OK(t, filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		must.OK(t, err)
		content, _ := os.ReadFile(path)
		all = append(all, path+" "+must.Get(e.Info())(t).Mode().String()+" "+string(content))
		return nil
	}))
	return all
}

// TestLayers has a conversation's commands, one after the other, use caches and attack them.
func TestLayers(t *testing.T) {
	c := newCached(t, 0)
	before := files(t, c.base+"/home")
	for _, tt := range []struct{ script, want string }{
		{"cat ~/.cache/tool/a; echo new >~/.cache/tool/a; cat ~/.cache/tool/a", "old\nnew\n"},
		{"mkdir ~/.npm/x; echo log >>~/.cache/log; echo x >~/.npm/n", ""},
		{"cat ~/.cache/tool/a ~/.cache/log ~/.npm/n", "new\nlog\nx\n"}, // it stays in the conversation
		{"mv ~/.cache/tool ~/.cache/t && cat ~/.cache/t/a; rm -r ~/.cache/t; ls ~/.cache", "new\nlink\nlog\n"},
		{"ls ~/.cache; chmod -R u+w ~/go/pkg/mod && rm -r ~/go/pkg/mod/m@v1 && ls ~/go/pkg/mod", "link\nlog\n"},
		{"echo '#!/bin/sh\necho runs' >~/.cache/p; chmod +x ~/.cache/p; ~/.cache/p", "runs\n"},
		// What is no cache stays as it is.
		{"echo x >~/.bashrc || echo no", "no\n"},
		{"echo x >~/.cache/../new || echo no", "no\n"},
		{"echo x >~/.cache/link || echo no", "no\n"},
		{"ln -s ../.bashrc ~/.cache/l && (echo x >~/.cache/l || echo no)", "no\n"},
		{"ln ~/.bashrc ~/.cache/h || echo no", "no\n"},
		{"mv ~/.bashrc ~/.cache/ || echo no", "no\n"},
		{"mv ~/.cache ~/c || echo no; rmdir ~/.npm || rm -r ~/.npm || echo no", "no\nno\n"},
		{"echo x >/proc/self/cwd/../home/.bashrc || echo no", "no\n"},
		// Nor can a layer be reached but through the cache, or undone.
		{"for d in $STATE $STATE/* $STATE/*/* $STATE/*/*/* $STATE/*/*/*/*; do echo x >$d/evil && echo $d; done; true", ""},
		{"mknod ~/.cache/w c 0 0 || echo no", "no\n"},
		{"umount ~/.cache || umount -l ~/.cache || unshare -Urm umount ~/.cache || echo no", "no\n"},
		{`/usr/bin/python3 -c 'import os
for name in "trusted.overlay.opaque", "user.overlay.opaque", "user.overlay.redirect":
    try: os.setxattr(os.environ["HOME"] + "/.cache", name, b"y")
    except OSError: pass'; ls -a ~/.cache | tail -1; cat ~/.bashrc`, "p\nb"},
	} {
		if res := c.run(t, tt.script); res.Stdout != tt.want {
			t.Errorf("%s: %q %s", tt.script, res.Stdout, res.Stderr)
		}
	}
	must.Equal(t, "the home", before, files(t, c.base+"/home"))
	must.OK(t, c.Close())
	must.Equal(t, "layers", 0, len(must.Get(os.ReadDir(c.base+"/state/layers"))(t)))
	if res := c.run(t, "cat ~/.cache/tool/a"); res.Stdout != "old\n" {
		t.Errorf("a conversation that goes on: %+v", res)
	}
	must.OK(t, c.Close())
}

func TestLayersAsUser(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.AsUser(t, cmd, os.TempDir()) }, func(t *testing.T) {
		t.Run("Layers", TestLayers)
		t.Run("LayersAtTheSameTime", TestLayersAtTheSameTime)
		t.Run("FullLayers", TestFullLayers)
		t.Run("LeftLayers", TestLeftLayers)
	})
}

// TestLayersAtTheSameTime gives a command that begins beside another one layers of its own.
func TestLayersAtTheSameTime(t *testing.T) {
	c := newCached(t, 0)
	first := make(chan run.Result)
	go func() {
		first <- c.run(t, "echo x >~/.cache/mine; touch begun; until [ -e done ]; do sleep 0.01; done; cat ~/.cache/mine")
	}()
	for begun := false; !begun; {
		_, err := os.Stat(c.base + "/work/begun")
		begun = err == nil
	}
	must.Equal(t, "the second", "old\n", c.run(t, "cat ~/.cache/mine; cat ~/.cache/tool/a; echo y >~/.cache/mine; touch done").Stdout)
	must.Equal(t, "the first", "x\n", (<-first).Stdout)
	must.OK(t, c.Close())
}

// TestFullLayers ends a command that fills the disk with its layers.
func TestFullLayers(t *testing.T) {
	c := newCached(t, 4<<20)
	res := c.run(t, "dd if=/dev/zero of=$HOME/.cache/big bs=1M count=64 2>&1; sleep 30; echo up")
	if strings.Contains(res.Stdout, "up") || !strings.Contains(res.Aggregated, "grew over 4 MiB") {
		t.Errorf("%+v", res)
	}
	must.Equal(t, "after it", "link\ntool\n", c.run(t, "ls ~/.cache").Stdout)
	must.OK(t, c.Close())
}

// TestLeftLayers removes those of a server that was killed, and not those of another one.
func TestLeftLayers(t *testing.T) {
	c := newCached(t, 0)
	module := c.base + "/state/layers/left/0/x/up/m"
	must.OK(t, os.MkdirAll(module, 0o700), os.WriteFile(module+"/file", nil, 0o600), os.Chmod(module, 0o500))
	c.run(t, "echo x >~/.cache/mine")
	hostile := must.Get(os.Open(c.base + "/state/layers"))(t) // which a command can lock
	defer hostile.Close()
	must.OK(t, unix.Flock(int(hostile.Fd()), unix.LOCK_EX))
	other := *c
	other.Sandbox = box.New(box.Options{Layers: box.Layers{Folder: c.base + "/state/layers"}})
	other.run(t, "true")
	must.Equal(t, "layers", 2, len(must.Get(os.ReadDir(c.base+"/state/layers"))(t)))
	must.Equal(t, "the first's", "x\n", c.run(t, "cat ~/.cache/mine").Stdout)
	must.OK(t, other.Close(), c.Close())
}

// TestGoProject tests a project that listens, with the cache of this machine's go.
func TestGoProject(t *testing.T) {
	boxtest.NeedRooms(t)
	base := tree(t, "work/go.mod=module example.com/m\n\ngo 1.26\n", "work/tmp/", "state/", `work/m_test.go=package m

import ("net/http"; "net/http/httptest"; "testing")

func Test(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if r, err := http.Get(s.URL); err != nil || r.StatusCode != 404 {
		t.Fatal(r, err)
	}
}
`)
	cache := strings.TrimSpace(string(must.Get(exec.Command("go", "env", "GOCACHE").Output())(t)))
	before := must.Get(os.ReadFile(cache + "/trim.txt"))(t)
	sandbox := box.New(box.Options{Layers: box.Layers{Folder: base + "/state"}})
	env := append([]string{"TMPDIR=" + base + "/work/tmp", "GOTOOLCHAIN=local", "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0"}, os.Environ()...)
	for _, want := range []string{"ok  \texample.com/m\t0", "(cached)"} { // the second finds what the first left
		confinement := must.Get(sandbox.Confine(write(), base+"/work", env))(t)
		res := ran(t, run.Spec{
			Argv: []string{"go", "test", "./..."}, Dir: base + "/work", Env: env, Timeout: 5 * time.Minute, Confinement: confinement,
		})
		if res.ExitCode != 0 || !strings.Contains(res.Stdout, want) {
			t.Errorf("exit code %d: %s", res.ExitCode, res.Aggregated)
		}
	}
	must.Equal(t, "the cache", string(before), string(must.Get(os.ReadFile(cache+"/trim.txt"))(t)))
	must.OK(t, sandbox.Close())
}
