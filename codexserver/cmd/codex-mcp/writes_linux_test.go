package main

import (
	bytes "encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"golang.org/x/sys/unix"
)

// TestTurnWritesItsRecords checks what turns with and without a command write in a repository with
// changed, new and ignored files: the conversation's file, its lock, and no more bytes than these, the
// answers and the requests need. The kernel tells what happens in all folders, so that a file that is
// made and removed again shows, too. Only a turn with a command makes a folder for git.
func TestTurnWritesItsRecords(t *testing.T) {
	t.Parallel()
	const turns, most = 20, 64 << 10 // bytes of a turn
	f := newFolders(t)
	model := providertest.New()
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
	temporary := filepath.Join(filepath.Dir(f.home), "temporary")
	script := "git init -q; echo x > a; echo '*.o' > .gitignore; git add .; git -c user.name=a -c user.email=a@b commit -qm a; echo y > a; echo z > new; mkdir out; touch out/x x.o; mkdir " + temporary
	lay := exec.CommandContext(t.Context(), "sh", "-ec", script)
	lay.Dir = f.cwd
	if out, err := lay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	laid := time.Now()
	p := launch(t, f, exec.Command("env", "TMPDIR="+temporary, built(t), "-engine", "native"))
	p.hello(`{}`)
	seen := map[int]bool{}
	id := 0
	call := func(command ...string) {
		id++
		answers := []providertest.Turn{providertest.Say("done")}
		if command != nil {
			answers = []providertest.Turn{providertest.Call(providertest.Shell("c", command...)), answers[0]}
		}
		model.Reset(answers...)
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi","approval-policy":"never","sandbox":"danger-full-access"}}}`, id))
		p.expect(map[string]any{"id": float64(id)}, seen)
	}
	for id < 2 || time.Since(laid) < time.Second { // takes the reserve, and no file has just changed
		call("cat", "a")
	}
	happened := watched(t, f.home, f.cwd, f.user, temporary)
	record := regexp.MustCompile(`^home/(sessions/|codex-mcp/|codex-mcp-locks/|tmp/log-)`) // as docs/reference/kept.md says
	for _, tt := range []struct {
		command []string
		turns   int
		more    string // besides the records
	}{
		{nil, turns, `^$`},
		{[]string{"cat", "a"}, 3, `^home/tmp/git-[0-9]+$`},
		{[]string{"sh", "-c", "echo 1 > made"}, 1, `^work/made$|^home/tmp/git-[0-9]+$`},
	} {
		before := written(t, p.cmd.Process.Pid)
		for range tt.turns {
			call(tt.command...)
		}
		if each := (written(t, p.cmd.Process.Pid) - before) / tt.turns; each > most {
			t.Errorf("a turn with %q writes %d bytes", tt.command, each)
		}
		more, records := regexp.MustCompile(tt.more), 0
		for _, name := range happened() {
			switch {
			case record.MatchString(name):
				records++
			case !more.MatchString(name):
				t.Errorf("a turn with %q wrote %s", tt.command, name)
			}
		}
		if records < tt.turns {
			t.Errorf("the kernel told of %d writes to records", records)
		}
	}
}

// watched returns a function that returns where files were written, made or removed in the folders, and
// in those below them that were there, since the last call.
func watched(t *testing.T, folders ...string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	at := map[uint32]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			const events = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB
			w, err := unix.InotifyAddWatch(fd, path, events)
			at[uint32(w)], _ = filepath.Rel(filepath.Dir(folder), path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() (names []string) {
		buf := make([]byte, 1<<20)
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				return names
			}
			if err != nil {
				t.Fatal(err)
			}
			for b := buf[:n]; len(b) > 0; {
				word := func(i int) uint32 { return bytes.NativeEndian.Uint32(b[4*i:]) }
				end := unix.SizeofInotifyEvent + int(word(3))
				if word(1)&unix.IN_Q_OVERFLOW != 0 {
					t.Fatal("too many events")
				}
				names = append(names, filepath.Join(at[word(0)], strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")))
				b = b[end:]
			}
		}
	}
}

// written returns how many bytes a process has written to files, pipes and connections.
func written(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Skip("the system does not count what a process writes:", err)
	}
	if _, err := fmt.Sscanf(string(all[strings.Index(string(all), "wchar:"):]), "wchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
