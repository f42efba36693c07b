package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// LoadSecret returns the secret in a file of at most limit bytes. If there is no file, it
// creates one with the result of create; if two processes do so at once, both return the
// secret of the first. It refuses a link, a file that others can read, and a file of
// another user.
func LoadSecret(path string, limit int64, create func() []byte) ([]byte, error) {
	secret, err := ReadSecret(path, limit)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// The file must appear with its content, since another process may read it at once.
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // its mode is 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(create())
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return ReadSecret(path, limit) // another process may have been first
}

// ReadSecret is like [LoadSecret] but does not create a file.
func ReadSecret(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := private(info); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Read(path, limit)
}

// Exposed returns an error if other users may read the secrets in a folder, or put files into it. On Windows no mode says who
// may read a file: its folder does, and only the user's profile is closed to others. Elsewhere [ReadSecret] looks at the mode.
func Exposed(system, folder string) error {
	if system != "windows" {
		if info, err := os.Stat(folder); err == nil && info.Mode()&0o002 != 0 {
			return fmt.Errorf("other users may put files into %s, which say what runs: chmod o-w it", folder)
		}
		return nil
	}
	if profile, err := os.UserHomeDir(); err == nil && paths.Below(folder, profile) {
		return nil
	}
	return fmt.Errorf("%s is outside of your profile: other users of this computer may read the secrets in it", folder)
}
