package git

import "time"

// stat is what the file system says of a file, without links. The zero value is that of no file.
type stat struct {
	mode              uint32 // as the system and git write it
	size              int64
	modified, changed int64 // in nanoseconds since 1970; a program cannot set changed
	inode, device     uint64
}

func (s stat) exists() bool { return s != stat{} }

// is reports whether a file has a type, such as modeFile.
func (s stat) is(mode uint32) bool { return s.mode&modeType == mode }

// stored reports whether git stores such a file.
func (s stat) stored() bool { return s.is(modeFile) || s.is(modeLink) }

// coarse is how exact times are at least, if they are those of several clocks.
const coarse = 2 * time.Second

// Types of files, of systems and of git, which has one more, of submodules.
const (
	modeType   = 0o170000
	modeFile   = 0o100000
	modeLink   = 0o120000
	modeFolder = 0o040000
	modeModule = "160000"
)
