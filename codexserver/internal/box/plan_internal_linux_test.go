package box

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestPlanWords has the words of a plan say all of it, and words that lack something say nothing.
func TestPlanWords(t *testing.T) {
	p := plan{
		limits: rooms | network, files: 1 << 40, keepShm: true,
		fixed:   []fixed{{"/a b\n\"", kept}, {"/b", denied}, {"/c", open}, {"/d", readOnly}},
		absent:  []string{"/absent", ""},
		layered: layered{folder: "/layers\n", free: -1, limit: 1 << 50, caches: []string{"/cache"}},
	}
	private := cmp.AllowUnexported(plan{}, fixed{}, layered{})
	must.Equal(t, "the plan", p, must.Get(readPlan(p.words()))(t), private)
	must.Equal(t, "one without rooms", plan{limits: network}, must.Get(readPlan(plan{limits: network}.words()))(t), private)
	const members = 6
	bare := plan{limits: rooms}
	must.Equal(t, "one with nothing but members", bare, must.Get(readPlan(bare.words()))(t), private)
	lines := strings.Split(bare.words(), "\n")
	must.Equal(t, "its lines", members, len(lines))
	for _, words := range []string{
		"", "x", "256", strings.Join(lines[:members-1], "\n"), bare.words() + "\nkept /unquoted", bare.words() + "\nlayer", bare.words() + "\nabsent",
		strings.Replace(p.words(), "1099511627776", "x", 1), strings.Replace(p.words(), "-1", "x", 1),
	} {
		if got, err := readPlan(words); err == nil {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

// TestMostFixed has a repository with as many submodules as are kept, with one less and with more.
func TestMostFixed(t *testing.T) {
	for _, n := range []int{maxFixed/2 - 2, maxFixed / 2, maxFixed} {
		root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		t.Setenv("TMPDIR", "/nowhere")
		for i := range n {
			dir := filepath.Join(root, "x/.git/modules", fmt.Sprintf("%04d", i))
			must.OK(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config"), nil, 0o600))
		}
		r := Roots{Paths: []string{root + "/x"}}
		const folders = 2 // .git and modules; each submodule has a folder and a file
		must.Equal(t, fmt.Sprint(n, " submodules"), min(folders+2*n, maxFixed), len(r.fixed()))
	}
}

// TestIDs finds mounts by their places, and one that went along with its folder by its name.
func TestIDs(t *testing.T) {
	p := plan{fixed: []fixed{{"/w/a/.env", denied}, {"/w/b/.env", denied}, {"/w/c", kept}, {"/w/gone", denied}}}
	mounted := []mount{
		{id: "1", point: "/"}, {id: "2", point: "/w/x/.env"}, {id: "3", point: "/w/b/.env"}, {id: "4", point: "/w/c"}, {id: "5", point: "/w/c"},
	}
	must.Equal(t, "ids", []string{"2", "3", "5", ""}, p.idsOf(mounted))
}

// TestWatchEnded has the watch of a command begin when the command has ended, as of one that takes no time.
func TestWatchEnded(t *testing.T) {
	cmd := exec.Command("true")
	must.OK(t, cmd.Start())
	must.OK(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	p := plan{fixed: []fixed{{"/a", kept}}}
	must.Equal(t, "of one that was not reaped", "", p.watch(cmd.Process.Pid, &watch{fd: -1}))
	must.OK(t, cmd.Wait())
	must.Equal(t, "of one that was", "", p.watch(cmd.Process.Pid, &watch{fd: -1}))
}
