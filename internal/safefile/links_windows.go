package safefile

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isBusy reports whether an error may mean that somebody has the file open.
func isBusy(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// HasOtherNames reports whether the file has more than one name (hard link), so that a write
// to it changes what another name leads to.
func (f *File) HasOtherNames() (bool, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.file.Fd()), &info); err != nil {
		return false, at(f.path, err)
	}
	return info.NumberOfLinks > 1, nil
}
