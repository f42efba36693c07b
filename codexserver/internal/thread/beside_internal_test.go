package thread

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOverlap has the folders of two turns, of which the first finds them by name.
func TestOverlap(t *testing.T) {
	at := func(own, given []string) *occupied {
		return &occupied{Thread: fmt.Sprint(own, given), Own: own, All: slices.Concat(own, given), Resolved: true}
	}
	type names = []string
	for _, tt := range []struct {
		a, aGiven, b, bGiven names
		own, theirs          string
	}{
		{names{"/repo/sub"}, nil, names{"/repo"}, nil, "/repo/sub", "/repo"},
		{names{"/repo/sub"}, names{"/tmp"}, names{"/repo"}, names{"/tmp"}, "/repo/sub", "/repo"},
		{names{"/a"}, nil, names{"/repo", "/"}, nil, "/a", "/"},
		{names{"/repo/a"}, nil, names{"/repo/b"}, names{"/repo"}, "/repo/a", "/repo"},
		{names{"/repo/a"}, nil, names{"/repo/b", "/repo"}, nil, "/repo/a", "/repo"},
		{names{"/tmp/a"}, names{"/tmp"}, names{"/tmp/a/b"}, names{"/tmp"}, "/tmp/a", "/tmp/a/b"},
		{names{"/tmp"}, names{"/tmp"}, names{"/tmp/a"}, names{"/tmp"}, "/tmp", "/tmp/a"},
		{names{"/repo/sub"}, nil, names{"/b", "/repo"}, nil, "/repo/sub", "/repo"},
		{names{"/repo/sub"}, nil, names{"/b"}, names{"/repo"}, "/repo/sub", "/repo"},
		{names{"/a", "/x/y"}, nil, names{"/x"}, nil, "/x/y", "/x"},
		{names{"/a"}, names{"/x/y"}, names{"/x"}, nil, "/x/y", "/x"},
		{names{"/a", "/x/y"}, nil, names{"/b", "/x"}, nil, "/x/y", "/x"},
		{names{"/tmp/a"}, names{"/tmp"}, names{"/repo"}, names{"/tmp"}, "/tmp/a", "/tmp"},

		{names{"/repo/a"}, names{"/tmp"}, names{"/repo/b"}, names{"/tmp"}, "", ""},
		{names{"/repo"}, names{"/tmp", "/tmp/x"}, names{"/repo"}, names{"/tmp", "/tmp/x"}, "", ""},
		{names{"/repo"}, names{"/repo/tmp"}, names{"/repo"}, names{"/repo/tmp"}, "", ""},
		{names{"/tmp/a"}, names{"/tmp"}, names{"/tmp/b"}, names{"/tmp"}, "", ""},
		{names{"/tmp/a"}, names{"/tmp"}, names{"/tmp/a"}, names{"/tmp"}, "", ""},
		{names{"/a"}, names{"/tmp", "/tmp/x"}, names{"/b"}, names{"/tmp", "/tmp/x"}, "", ""},
		{names{"/a"}, names{"/tmp", "/tmp/x"}, names{"/b"}, names{"/tmp"}, "", ""},
		{names{"/home/a"}, names{"/home"}, names{"/home/b"}, names{"/home"}, "", ""}, // below a configured root
		{names{"/repo"}, nil, names{"/repository"}, nil, "", ""},
	} {
		a, b := at(tt.a, tt.aGiven), at(tt.b, tt.bGiven)
		a.Thread, b.Thread = "a", "b"
		own, theirs := a.overlap(b)
		must.Equal(t, fmt.Sprint(tt, " a"), tt.own+" "+tt.theirs, own+" "+theirs)
		theirs, own = b.overlap(a)
		must.Equal(t, fmt.Sprint(tt, " b"), tt.own+" "+tt.theirs, own+" "+theirs)
		a.Thread = "b"
		if own, _ := a.overlap(b); own != "" {
			t.Errorf("%v: a conversation with itself", tt)
		}
		a.Thread, a.Resolved, b.Resolved = "a", false, false
		if own, _ := a.overlap(b); own != "" {
			t.Errorf("%v: two that hold their folders", tt)
		}
	}
}

// TestField has two servers with one home, and one that is dead.
func TestField(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "turns")
	one, two := &field{dir: dir}, &field{dir: dir}
	count := func(f *field, folder string, want int) (leave func()) {
		t.Helper()
		others, leave, err := f.enter(&occupied{Own: []string{folder}})
		must.OK(t, err)
		if len(others) != want {
			t.Errorf("%s beside %d, want %d", folder, len(others), want)
		}
		return leave
	}
	first := count(one, "/a", 0)
	second := count(two, "/b", 1)
	third := count(one, "/c", 2)
	first()
	first()
	count(two, "/d", 2)()
	second()
	third()
	must.OK(t, os.WriteFile(filepath.Join(dir, filePrefix+"dead"), []byte(`{"own":["/x"]}`), 0o600))
	count(one, "/e", 0)()
	if left := must.Get(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	alone := &field{}
	leave := count(alone, "/a", 0)
	count(alone, "/b", 1)()
	leave()
	count(alone, "/b", 0)()
}

// TestFieldKilled kills a server during a turn, whose folders then count no more.
func TestFieldKilled(t *testing.T) {
	const key = "CODEXMCP_TEST_FIELD"
	if dir := os.Getenv(key); dir != "" {
		_, _, err := (&field{dir: dir}).enter(&occupied{Own: []string{"/a"}})
		must.OK(t, err)
		fmt.Println("entered")
		select {}
	}
	dir := filepath.Join(t.TempDir(), "turns")
	other := exec.Command(os.Args[0], "-test.run=^TestFieldKilled$")
	other.Env = append(os.Environ(), key+"="+dir)
	out := must.Get(other.StdoutPipe())(t)
	must.OK(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	enter := func() int {
		others, leave, err := (&field{dir: dir}).enter(&occupied{Own: []string{"/b"}})
		must.OK(t, err)
		leave()
		return len(others)
	}
	must.Equal(t, "while it lives", 1, enter())
	must.OK(t, other.Process.Kill())
	_ = other.Wait() // it was killed
	must.Equal(t, "when it is dead", 0, enter())
	must.Equal(t, "files left", 0, len(must.Get(os.ReadDir(dir))(t)))
}

// TestFieldAtOnce has turns of two servers begin at the same moment: at least one of each two sees the other.
func TestFieldAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "turns")
	for range 100 {
		saw := make(chan int, 2)
		var leaves [2]func()
		for i := range leaves {
			go func() {
				others, leave, err := (&field{dir: dir}).enter(&occupied{Own: []string{"/a"}})
				if leaves[i] = leave; err != nil {
					t.Error(err)
				}
				saw <- len(others)
			}()
		}
		if n := <-saw + <-saw; n == 0 {
			t.Fatal("neither has seen the other")
		}
		for _, leave := range leaves {
			if leave != nil {
				leave()
			}
		}
	}
}
