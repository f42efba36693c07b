//go:build unix

package transcript

import (
	"errors"
	"os"
)

// nameless returns a file without a name. Other processes cannot open it, and it disappears
// with this process.
func nameless(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(folder, "log-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
