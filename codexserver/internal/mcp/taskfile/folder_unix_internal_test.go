//go:build unix

package taskfile

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
)

type fileInfo struct {
	fs.FileInfo
	mode fs.FileMode
	uid  int
}

func (i fileInfo) Mode() fs.FileMode { return i.mode }
func (i fileInfo) Sys() any          { return &syscall.Stat_t{Uid: uint32(i.uid)} }

func TestIsOwn(t *testing.T) {
	for _, tt := range []struct {
		mode fs.FileMode
		uid  int
		want bool
	}{
		{0o600, os.Geteuid(), true},
		{0o644, os.Geteuid(), true},
		{0o620, os.Geteuid(), false},
		{0o602, os.Geteuid(), false},
		{0o600, os.Geteuid() + 1, false},
	} {
		if got := isOwn(fileInfo{mode: tt.mode, uid: tt.uid}); got != tt.want {
			t.Errorf("%v of user %d: %t", tt.mode, tt.uid, got)
		}
	}
}
