package taskfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// TestHostileIDs checks that an invalid id leads to no file.
func TestHostileIDs(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	must(t, os.WriteFile(filepath.Join(home, "task-x."+secret+".json"), []byte("{}"), 0o600))
	before := names(t, home)
	for _, id := range []string{
		"", ".", "..", "x", "x.", "." + secret, secret, "x." + secret[1:], "x." + secret + strings.Repeat("A", 101), strings.Repeat("x", 102) + "." + secret,
		"../../task-x." + secret, "x/../../../task-x." + secret, `..\..\task-x.` + secret, "x." + secret + "/..", "x." + secret + "/../../../x",
		task.ID + "/", task.ID + ".json", task.ID + "\x00", "\x00" + task.ID, task.ID + " ", " " + task.ID, task.ID + ".", task.ID + "\n", task.ID + "::$DATA",
		"C:" + secret, "C:x." + secret, "/etc/passwd", "x.y." + secret, "x..." + secret, "~." + secret, "%2e%2e%2f." + secret, "*." + secret, "x?." + secret,
		"ｘ." + secret, "é." + secret, "x.ＡBCDEFGHIJKLMNOPQRSTUVWXYZ", "x.ſBCDEFGHIJKLMNOPQRSTUVWXYZ", "x\u202e." + secret, "\xff." + secret,
		strings.Repeat("x", 1<<20) + "." + secret,
	} {
		unknown(t, s, id)
		if _, err := s.Create(taskfile.Task{ID: id, Status: modern.TaskStatusWorking}); err == nil || len(err.Error()) > 2000 {
			t.Errorf("%.300q was created, or the error is %.300v", id, err)
		}
		if _, err := s.Update(taskfile.Task{ID: id, Status: modern.TaskStatusWorking}); !errors.Is(err, taskfile.ErrNotServed) {
			t.Errorf("%.300q: %v", id, err)
		}
	}
	for _, thread := range []string{"", "a.b", "a/b", "..", "con.", strings.Repeat("x", 102), "ü"} {
		if id, err := taskfile.NewID(thread); err == nil {
			t.Errorf("%q has the task %q", thread, id)
		}
	}
	// On a file system that ignores case this is another name of the task's file.
	unknown(t, s, strings.ToLower(task.ID))
	unknown(t, s, strings.ToUpper(task.ID))
	if after := names(t, home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	found(t, s, task, taskfile.Self)
}

func names(t *testing.T, home string) string {
	t.Helper()
	var all []string
	err := filepath.Walk(home, func(path string, _ os.FileInfo, err error) error {
		all = append(all, path)
		return err
	})
	must(t, err)
	return strings.Join(all, "\n")
}

// TestHostileFiles checks that a foreign file is neither read nor replaced.
func TestHostileFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(file, good string) error // good is a file of a task
		want any
	}{
		{"link", func(file, good string) error { return os.Symlink(good, file) }, new(*safefile.KindError)},
		{"dangling link", func(file, good string) error { return os.Symlink(good+"no", file) }, new(*safefile.KindError)},
		{"folder", func(file, _ string) error { return os.Mkdir(file, 0o700) }, new(*safefile.KindError)},
		{"endless", func(file, _ string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 64<<20+1))
		}, new(*safefile.SizeError)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			s := newStore(t, home)
			good, bad := create(t, s), create(t, s)
			file := path(home, bad.ID)
			must(t, os.Remove(file), tt.make(file, path(home, good.ID)))
			if got, _, err := s.Get(bad.ID); !errors.As(err, tt.want) || errors.Is(err, taskfile.ErrUnknown) {
				t.Errorf("%+v, %v", got, err)
			}
			if list, err := s.Gone(); !errors.As(err, tt.want) || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
			bad.Message = "changed"
			if _, err := s.Update(bad); tt.name != "endless" && !errors.As(err, tt.want) {
				t.Errorf("Update: %v", err)
			}
			found(t, s, good, taskfile.Self)
		})
	}
}

// TestSwap checks that a file under another task's name does not count as that task.
func TestSwap(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	one, two := create(t, s), create(t, s)
	must(t, os.Rename(path(home, one.ID), path(home, two.ID)))
	if got, _, err := s.Get(two.ID); err == nil || !strings.Contains(err.Error(), "member id") {
		t.Errorf("%+v, %v", got, err)
	}
	unknown(t, s, one.ID)
	id := strings.ToLower(two.ID)
	two.Message = "again"
	two = update(t, s, two)
	must(t, os.Rename(path(home, two.ID), path(home, id)))
	unknown(t, s, id)
}

// TestTooLarge checks that a task too large to be read is not written.
func TestTooLarge(t *testing.T) {
	s := newStore(t, t.TempDir())
	task := create(t, s)
	large := task
	large.Message = strings.Repeat("x", 64<<20)
	var size *safefile.SizeError
	if _, err := s.Update(large); !errors.As(err, &size) {
		t.Errorf("Update: %.300v", err)
	}
	found(t, s, task, taskfile.Self)
}

// TestNoFolder checks that every call fails if the home is not a folder.
func TestNoFolder(t *testing.T) {
	home := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(home, nil, 0o600))
	s := newStore(t, home)
	if _, err := s.Create(taskfile.Task{ID: newID(t), Status: modern.TaskStatusWorking}); err == nil {
		t.Error("a task was made")
	}
	if _, _, err := s.Get(newID(t)); err == nil {
		t.Error("a task was found")
	}
}
