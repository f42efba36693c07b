//go:build unix

package safefile

import "syscall"

// HasOtherNames reports whether the file had more than one name (hard link) when it was
// opened, so that a write to it changes what another name leads to.
func (f *File) HasOtherNames() (bool, error) {
	stat, ok := f.info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1, nil
}
