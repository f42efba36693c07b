//go:build !unix && !windows

package safefile

// HasOtherNames reports false: this system has no known hard links.
func (f *File) HasOtherNames() (bool, error) { return false, nil }
