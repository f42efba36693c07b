package shared_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
)

// offering offers links to a page in a home, and returns the name and the folder of the socket.
func offering(t *testing.T, home string) (f *shared.Folder, name, path string) {
	t.Helper()
	f, err := shared.OpenPages(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l := &shared.Links{
		Version: "1", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Status: func() *shared.Status { return &shared.Status{PID: os.Getpid(), Page: &shared.Page{}} },
		New:    func() string { t.Error("somebody got a link"); return "LINK" },
	}
	if err := f.Offer(l); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(home, "codex-mcp", "run", "pages")
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(path, "*.[sp]*")); len(left) > 0 {
			t.Errorf("it left %q", left)
		}
	})
	names, err := f.Names()
	if err != nil || len(names) != 1 {
		t.Fatalf("names %q, %v", names, err)
	}
	return f, names[0], path
}

// TestLinkIsRefused plays those who may not have a link to the page. None gets one, and each is told
// why.
func TestLinkIsRefused(t *testing.T) {
	thief := func(words ...string) func(t *testing.T, home, name, path string) string {
		return func(t *testing.T, home, name, _ string) string {
			said := filepath.Join(t.TempDir(), "said")
			cmd := exec.Command(words[0], append(words[1:], name, said)...)
			if strings.HasSuffix(words[0], "sh") {
				cmd = exec.Command(words[0], "-c", fmt.Sprintf(words[1], os.Args[0], name, said))
			}
			cmd.Env = append(os.Environ(), role+"=thief", "SHARED_TEST_HOME="+home, "SHARED_TEST_SERVER="+fmt.Sprint(os.Getpid()))
			out, err := cmd.CombinedOutput() // until the orphan has ended too
			text, failed := os.ReadFile(said)
			if err = errors.Join(err, failed); err != nil {
				t.Fatalf("%s %v", out, err)
			}
			return string(out) + string(text)
		}
	}
	for _, tt := range []struct {
		name  string
		steal func(t *testing.T, home, name, path string) string // returns what is told
		want  string
	}{
		{"a command of the process", thief(os.Args[0]), "is a command of the server"},
		{"an orphan of a command", thief("/bin/sh", "(setsid %s %s %s orphan &)"), "is a command of the server"},
		{"a command in a sandbox", thief("setpriv", "--no-new-privs", os.Args[0]), "another sandbox"},
		{"another user, to whom the folder is open", func(t *testing.T, _, name, path string) string {
			if os.Getuid() != 0 {
				t.Skip("only root can run a program as another user")
			}
			if err := errors.Join(os.Chmod(filepath.Join(path, name+".sock"), 0o666), os.Chmod(path, 0o711)); err != nil {
				t.Fatal(err)
			}
			return asUser(path, name+".sock")
		}, "user 54321 is not the server's"},
		{"a folder that is a link", func(t *testing.T, home, name, path string) string {
			if err := errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)); err != nil {
				t.Fatal(err)
			}
			_, err := shared.OpenPages(home)
			return fmt.Sprint(err)
		}, "is not a folder"},
		{"a folder above that is a link", func(t *testing.T, home, name, path string) string {
			run := filepath.Dir(path)
			if err := errors.Join(os.Rename(run, run+"2"), os.Symlink(run+"2", run)); err != nil {
				t.Fatal(err)
			}
			_, err := shared.OpenPages(home)
			return fmt.Sprint(err)
		}, "is not a folder"},
		{"a folder that others may enter", func(t *testing.T, home, name, path string) string {
			if err := os.Chmod(path, 0o750); err != nil {
				t.Fatal(err)
			}
			_, err := shared.OpenPages(home)
			return fmt.Sprint(err)
		}, "other users have access"},
		{"a folder of another user", func(t *testing.T, home, name, path string) string {
			if err := os.Chown(path, 54321, -1); errors.Is(err, syscall.EPERM) {
				t.Skip("only root can give a folder away")
			}
			_, err := shared.OpenPages(home)
			return fmt.Sprint(err)
		}, "belongs to another user"},
		{"a file in the socket's place", func(t *testing.T, home, name, path string) string {
			if err := os.WriteFile(filepath.Join(path, "fake.sock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := shared.OpenPages(home)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, err = f.Link(t.Context(), "fake")
			return fmt.Sprint(errors.Join(err, os.Remove(filepath.Join(path, "fake.sock"))))
		}, "is not a socket of this user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			_, name, path := offering(t, home)
			if got := tt.steal(t, home, name, path); !strings.Contains(got, tt.want) || strings.Contains(got, "LINK") {
				t.Errorf("told %q, want %q", got, tt.want)
			}
		})
	}
}
