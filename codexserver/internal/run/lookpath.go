package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	for _, folder := range filepath.SplitList(lastValue(env, "PATH")) {
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

// lastValue returns the value of name in env. The last entry counts.
func lastValue(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && key == name {
			return value
		}
	}
	return ""
}
