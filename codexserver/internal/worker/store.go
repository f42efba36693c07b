package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrFull means that the store has no room for a write, or refuses its size.
	ErrFull = errors.New("the store is full")
	// ErrFenced means that another writer has taken the store over. It is final.
	ErrFenced = errors.New("another server has taken over this store")
	// ErrUnavailable means that the store cannot be reached. A write may have happened.
	ErrUnavailable = errors.New("the store cannot be reached")
	// ErrNotFound means that there is nothing with a name.
	ErrNotFound = errors.New("the store does not have it")
	// ErrOrder means that the log does not end where an append should begin.
	ErrOrder = errors.New("the log has another size in the store")
	// ErrName means that a name is malformed.
	ErrName = errors.New("malformed name")
)

const (
	// MaxName is the length of the longest name, in bytes.
	MaxName = 512
	// MaxData is how much Append takes and Read returns, in bytes.
	MaxData = 256 << 10
	// MaxValue is how much Put takes, in bytes. Few values have more than 1 MiB.
	MaxValue = 16 << 20
	// MaxList is how many entries List returns.
	MaxList = 1000
)

// Store keeps bytes under names. A Store belongs to one writer, whose epoch was chosen when it
// was made: once a writer with a higher epoch exists, all writes of this one fail with
// [ErrFenced]. After a write has returned nil it survives the end of the writer's machine.
//
// All methods are safe for concurrent use; the caller orders the writes to one name. Names are
// checked with [CheckName]. Errors wrap one of the errors above. Package workertest tests whether
// an implementation keeps these promises.
type Store interface {
	// Append appends at most [MaxData] bytes to a log. At is the size of the log before, and
	// 0 begins one. With another size the error wraps [ErrOrder], and nothing is written.
	Append(ctx context.Context, name string, at int64, data []byte) error
	// Put replaces all that there is under a name by at most [MaxValue] bytes: readers see
	// the old content or the new one. Append may continue it.
	Put(ctx context.Context, name string, data []byte) error
	// Delete removes what there is under a name. It is nil if there is nothing.
	Delete(ctx context.Context, name string) error
	// Read returns at most most bytes, and at most [MaxData], from an offset on. It returns
	// nothing at the end. The error wraps [ErrNotFound] if there is nothing with that name.
	Read(ctx context.Context, name string, at int64, most int) ([]byte, error)
	// List returns the first names, at most [MaxList], that are greater than after, in the
	// order of their bytes.
	List(ctx context.Context, after string) ([]Info, error)
}

// Info is an entry of a list.
type Info struct {
	// Name is that of a log or record.
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

const nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// CheckName fails with an error that wraps [ErrName] unless a name is made of components of
// letters, digits, dots, - and _, with slashes between them. No component begins with a dot.
func CheckName(name string) error {
	why := ""
	if len(name) > MaxName {
		why, name = "it is too long", name[:100]
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			why = "a component is empty"
		case part[0] == '.':
			why = "a component begins with a dot"
		case len(part) > 255:
			why = "a component is too long"
		case strings.Trim(part, nameBytes) != "":
			why = "it has other bytes than letters, digits, dots, - and _"
		}
	}
	if why != "" {
		return fmt.Errorf("%w %q: %s", ErrName, name, why)
	}
	return nil
}

// CheckWrite checks the arguments of a write of at most so many bytes.
func CheckWrite(name string, data []byte, most int) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if len(data) > most {
		return fmt.Errorf("%w: %s has %d bytes, and %d are allowed", ErrFull, name, len(data), most)
	}
	return nil
}
