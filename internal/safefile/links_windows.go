package safefile

import "golang.org/x/sys/windows"

// HasOtherNames reports whether the file has more than one name (hard link), so that a write
// to it changes what another name leads to.
func (f *File) HasOtherNames() (bool, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.file.Fd()), &info); err != nil {
		return false, at(f.path, err)
	}
	return info.NumberOfLinks > 1, nil
}
