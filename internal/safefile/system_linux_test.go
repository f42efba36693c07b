package safefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestInProc(t *testing.T) {
	for path, want := range map[string]bool{"/proc/self/status": true, "/proc": true, t.TempDir(): false, "/sys": false} {
		f := must.Get(os.Open(path))(t)
		must.Equal(t, path, want, must.Get(safefile.InProc(f))(t))
		must.Check(t, f.Close())
		if got, err := safefile.InProc(f); got || err == nil {
			t.Errorf("%s, closed: %v, %v", path, got, err)
		}
	}
}

// TestReserveOnAFullDisk runs itself in a mount namespace of its own. The room of the reserve is there
// when the disk is full: after a Release it can be written.
func TestReserveOnAFullDisk(t *testing.T) {
	if !testenv.Namespace(t) {
		return
	}
	const size = 256 << 10
	dir := t.TempDir()
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skip("no file system can be mounted:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	r := safefile.NewReserve(dir, size)
	must.OK(t, r.Check())
	write := func(name string, size int) error {
		return os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600)
	}
	if err := write("filler", 2<<20); !safefile.IsFull(err) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := r.Check(); !safefile.IsFull(err) {
		t.Errorf("a full disk has room: %v", err)
	}
	if err := write("record", size); !safefile.IsFull(err) {
		t.Errorf("the reserve is not taken: %v", err)
	}
	if err := errors.Join(r.Release(), write("record", size)); err != nil {
		t.Errorf("after the release: %v", err)
	}
	if err := r.Check(); !safefile.IsFull(err) {
		t.Errorf("what was released and used is there again: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "filler")), r.Check()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	limit := syscall.Rlimit{Cur: size - 1, Max: size - 1}
	signal.Ignore(syscall.SIGXFSZ)
	must.OK(t, r.Release(), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	if err := r.Check(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("files may not be so large: %v", err)
	}
}

// TestReserveWritesNothing checks that only the first Check may write.
func TestReserveWritesNothing(t *testing.T) {
	dir := t.TempDir()
	r := safefile.NewReserve(dir, 1<<20)
	must.OK(t, r.Check())
	written := func() (n int) {
		all, err := os.ReadFile("/proc/self/io")
		if err != nil {
			t.Skip("the system does not count what a process writes:", err)
		}
		must.Get(fmt.Sscanf(string(all[bytes.Index(all, []byte("wchar:")):]), "wchar: %d", &n))(t)
		return n
	}
	before := written()
	for range 10 {
		must.OK(t, r.Check())
	}
	if n := written() - before; n >= 1<<20 {
		t.Errorf("ten checks wrote %d bytes", n)
	}
}

// TestEndlessFiles checks that reading fails for kernel files that count as regular but never end.
func TestEndlessFiles(t *testing.T) {
	for _, path := range []string{"/proc/self/mem", "/proc/self/pagemap", "/proc/kcore"} {
		if data, err := safefile.Read(path, 1<<20); err == nil {
			t.Errorf("%s: %d bytes", path, len(data))
		}
	}
}
