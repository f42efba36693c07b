package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// LookPath finds a program as a shell in dir with the environment env would. It ignores
// relative folders in PATH.
func LookPath(program, dir string, env []string) (string, error) {
	if runtime.GOOS == "windows" {
		return exec.LookPath(program)
	}
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, executable(program)
	}
	var denied error
	for _, folder := range filepath.SplitList(Value(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, program)
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission):
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("not found in PATH: %w", syscall.ENOENT)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s: %w", path, syscall.EACCES)
	}
	return nil
}

// Value returns the value of a variable in an environment. The last entry counts. Windows ignores letter
// case.
func Value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && IsNamed(key, name) {
			return value
		}
	}
	return ""
}

// IsNamed reports whether a variable has a name. Windows ignores letter case.
func IsNamed(key, name string) bool {
	return key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name)
}
