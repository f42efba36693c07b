//go:build unix

package mcp

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newSeal(file string) (*Seal, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return &Seal{File: file, Logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

func mustSeal(t *testing.T, s *Seal, words string) string {
	t.Helper()
	sealed, err := s.seal([]byte(words))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestSealLasts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "codex-mcp", "key")
	one, log := newSeal(file)
	sealed := mustSeal(t, one, "words")
	if strings.Contains(sealed, "words") || sealed == mustSeal(t, one, "words") {
		t.Errorf("sealed %q", sealed)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Size() != keySize || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".key-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	two, _ := newSeal(file)
	if plain, err := two.open(sealed); err != nil || string(plain) != "words" {
		t.Errorf("after a restart: %q, %v", plain, err)
	}
	other, _ := newSeal("")
	if _, err := other.open(sealed); err == nil {
		t.Error("opens under another key")
	}
	for _, other := range []string{sealed + "\n", sealed[:8] + "\r" + sealed[8:], sealed + "=", "A" + sealed[1:], sealed[1:], ""} {
		if plain, err := two.open(other); err == nil && other != sealed {
			t.Errorf("%q for %q: %q", other, sealed, plain)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// TestKeyFiles checks the file of the key. If it is not a key that only the user can access,
// it stays unchanged, a key is kept in memory, and a warning is logged.
func TestKeyFiles(t *testing.T) {
	key := bytes.Repeat([]byte{7}, keySize)
	write := func(path string, b []byte, mode os.FileMode) error {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
	for _, tt := range []struct {
		name string
		make func(file string) error
		good bool
	}{
		{"a key", func(f string) error { return write(f, key, 0o600) }, true},
		{"a read-only key", func(f string) error { return write(f, key, 0o400) }, true},
		{"readable by the group", func(f string) error { return write(f, key, 0o640) }, false},
		{"readable by all", func(f string) error { return write(f, key, 0o604) }, false},
		{"writable by all", func(f string) error { return write(f, key, 0o602) }, false},
		{"short", func(f string) error { return write(f, key[1:], 0o600) }, false},
		{"long", func(f string) error { return write(f, append(key, 7), 0o600) }, false},
		{"empty", func(f string) error { return write(f, nil, 0o600) }, false},
		{"a folder", func(f string) error { return os.Mkdir(f, 0o700) }, false},
		{"a link to a key", func(f string) error {
			if err := write(f+"2", key, 0o600); err != nil {
				return err
			}
			return os.Symlink(f+"2", f)
		}, false},
		{"a link to nothing", func(f string) error { return os.Symlink(f+"3", f) }, false},
		{"a named pipe", func(f string) error { return exec.Command("mkfifo", "-m", "600", f).Run() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := tt.make(file); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(file)
			if err != nil {
				t.Fatal(err)
			}
			s, log := newSeal(file)
			sealed := mustSeal(t, s, "words")
			if plain, err := s.open(sealed); err != nil || string(plain) != "words" {
				t.Errorf("opens as %q, %v", plain, err)
			}
			again, _ := newSeal(file)
			if _, err := again.open(sealed); (err == nil) != tt.good {
				t.Errorf("opens after a restart: %v, want %t", err, tt.good)
			}
			if told := strings.Contains(log.String(), "kept in memory"); told == tt.good {
				t.Errorf("logged %q", log)
			}
			if strings.Contains(log.String(), string(key[:4])) {
				t.Error("the key is in the log")
			}
			after, err := os.Lstat(file)
			if err != nil || after.Mode() != before.Mode() || after.Size() != before.Size() || !os.SameFile(before, after) {
				t.Errorf("it is %v now, %v", after, err)
			}
			if _, err := os.Lstat(file + "3"); err == nil {
				t.Error("made a file through a link")
			}
		})
	}
}

func TestKeyWithoutHome(t *testing.T) {
	folder := t.TempDir()
	inTheWay := filepath.Join(folder, "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tooLong := filepath.Join(folder, strings.Repeat("x", 256)) // root, too, cannot make it
	for _, file := range []string{filepath.Join(inTheWay, "key"), tooLong, filepath.Join(tooLong, "key")} {
		s, log := newSeal(file)
		if plain, err := s.open(mustSeal(t, s, "words")); err != nil || string(plain) != "words" {
			t.Errorf("%s: %q, %v", file, plain, err)
		}
		if !strings.Contains(log.String(), "kept in memory") {
			t.Errorf("%s: logged %q", file, log)
		}
	}
}

const keyVariable = "CODEX_MCP_TEST_KEY"

// TestOneKeyForAll creates the key in several processes and goroutines at once. All of them
// must have the same key.
func TestOneKeyForAll(t *testing.T) {
	if file := os.Getenv(keyVariable); file != "" {
		s, log := newSeal(file)
		if sealed := mustSeal(t, s, "words"); log.Len() == 0 {
			os.Stdout.WriteString("sealed:" + sealed + "\n")
		}
		return
	}
	for range 5 {
		file := filepath.Join(t.TempDir(), "home", "key")
		var all sync.WaitGroup
		var mu sync.Mutex
		var sealed []string
		for range 4 {
			all.Go(func() {
				c := exec.Command(os.Args[0], "-test.run=^TestOneKeyForAll$")
				c.Env = append(os.Environ(), keyVariable+"="+file)
				out, err := c.Output()
				_, words, ok := strings.Cut(string(out), "sealed:")
				if err != nil || !ok {
					t.Errorf("%s, %v", out, err)
					return
				}
				words, _, _ = strings.Cut(words, "\n")
				mu.Lock()
				defer mu.Unlock()
				sealed = append(sealed, words)
			})
		}
		for range 8 {
			all.Go(func() {
				s, _ := newSeal(file)
				words := mustSeal(t, s, "words")
				mu.Lock()
				defer mu.Unlock()
				sealed = append(sealed, words)
			})
		}
		all.Wait()
		s, _ := newSeal(file)
		for _, words := range sealed {
			if _, err := s.open(words); err != nil {
				t.Errorf("another key: %v", err)
			}
		}
	}
}
