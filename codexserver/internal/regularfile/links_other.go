//go:build !unix && !windows

package regularfile

// HasOtherNames reports false: this system has no hard links that we know of.
func (f *File) HasOtherNames() (bool, error) { return false, nil }
