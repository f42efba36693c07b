package sandbox_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestMarks has two servers with one home: one writes in a folder, the other reads what lies in
// or above it.
func TestMarks(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	sub, link := filepath.Join(work, "sub"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(sub, 0o755), os.Symlink(work, link)); err != nil {
		t.Fatal(err)
	}
	infos := func(names ...string) (all []fs.FileInfo) {
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info)
		}
		return all
	}
	one, two := &sandbox.Marks{File: filepath.Join(home, "x", "lock")}, &sandbox.Marks{File: filepath.Join(home, "x", "lock")}
	for _, tt := range []struct {
		name, writes string
		reads        []string
		want         bool // both at a time
	}{
		{"the same folder", work, []string{"/", work}, false},
		{"a file below", work, []string{"/", work, sub}, false},
		{"a file above", sub, []string{"/", work}, true},
		{"by another name", link, []string{"/", work}, false},
		{"another folder", home, []string{"/", work}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			end, err := one.Write(t.Context(), time.Minute, nil, tt.writes)
			if err != nil {
				t.Fatal(err)
			}
			again, err := two.Write(t.Context(), time.Minute, nil, tt.writes)
			if err != nil {
				t.Fatal(err)
			}
			again()
			alone, ok := two.Alone(infos(tt.reads...))
			if ok != tt.want {
				t.Errorf("alone: %t", ok)
			}
			if ok {
				alone()
			}
			end()
			if alone, ok = two.Alone(infos(tt.reads...)); !ok {
				t.Fatal("nobody writes any more")
			}
			if _, ok := one.Alone(infos(tt.reads...)); ok {
				t.Error("two are alone")
			}
			waits := 0
			_, err = one.Write(t.Context(), time.Millisecond, func() { waits++ }, tt.writes)
			if (err == nil) != tt.want || err != nil && (!errors.Is(err, sandbox.ErrMarked) || waits != 1) {
				t.Errorf("a writer meanwhile: %v, %d", err, waits)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err = one.Write(ctx, time.Minute, nil, tt.writes); (err == nil) != tt.want || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("a turn that ends: %v", err)
			}
			alone()
		})
	}
}

// TestMarksOfACommand takes locks as a command in the sandbox can: it may read the file. It keeps
// others from being alone, which leads to a question, and keeps nobody from writing.
func TestMarksOfACommand(t *testing.T) {
	m := &sandbox.Marks{File: filepath.Join(t.TempDir(), "lock")}
	folder := t.TempDir()
	end, err := m.Write(t.Context(), time.Minute, nil, folder)
	if err != nil {
		t.Fatal(err)
	}
	end()
	f, err := os.Open(m.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := safefile.LockAt(f, 7); err == nil {
		t.Error("a file that is open for reading was locked")
	}
	if err := safefile.ShareAt(f, 7); err != nil {
		t.Error(err)
	}
	if end, err = m.Write(t.Context(), time.Minute, nil, folder); err != nil {
		t.Error(err)
	} else {
		end()
	}
	none := &sandbox.Marks{File: filepath.Join(m.File, "x")}
	if _, ok := none.Alone(nil); ok {
		t.Error("alone without a file")
	}
	if end, err := none.Write(t.Context(), time.Minute, nil, folder); err != nil {
		t.Error(err)
	} else {
		end()
	}
}

// TestMarksWhileProgramsStart marks a folder again and again while other goroutines start programs. A
// process that is about to become a program has a copy of each descriptor for a moment, and must not
// keep the marks with it.
func TestMarksWhileProgramsStart(t *testing.T) {
	m := &sandbox.Marks{File: filepath.Join(t.TempDir(), "marks")}
	folder, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	defer starting.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run()
			}
		})
	}
	for i := range 2000 {
		end, ok := m.Alone([]fs.FileInfo{folder})
		if !ok {
			t.Fatalf("after %d marks the folder is marked, and nobody has marked it", i)
		}
		end()
	}
}
