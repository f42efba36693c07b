package run

import (
	"cmp"
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
// relative folders in PATH, and on Windows the working folder, which may be a repository.
func LookPath(program, dir string, env []string) (string, error) {
	if filepath.Base(program) != program {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return executable(program)
	}
	var denied error
	for _, folder := range filepath.SplitList(Value(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path, err := executable(filepath.Join(folder, program))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	return "", cmp.Or(denied, fmt.Errorf("not found in PATH: %w", syscall.ENOENT))
}

// executable returns the path of a file that may be executed. Windows finds it without its extension.
func executable(path string) (string, error) {
	if runtime.GOOS == "windows" {
		return exec.LookPath(path)
	}
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s: %w", path, syscall.EACCES)
	}
	return path, err
}

// CheckBatch returns an error if Windows starts the program at a path by cmd.exe, because it is a batch file, and
// cmd.exe would read the words of argv again: as a pipe, as another command, or as a variable. System is a
// [runtime.GOOS].
func CheckBatch(system, path string, argv []string) error {
	program := strings.ToLower(strings.TrimRight(path, ". ")) // which Windows does not see
	if system != "windows" || !strings.HasSuffix(program, ".bat") && !strings.HasSuffix(program, ".cmd") {
		return nil
	}
	for _, word := range append([]string{path}, argv...) {
		if i := strings.IndexAny(word, "\"%&|<>^!\r\n"); i >= 0 {
			return fmt.Errorf("%s is a batch file, and cmd.exe reads %q in its words again: "+
				"start the program behind it", path, word[i])
		}
	}
	return nil
}

// Value returns the value of a variable in an environment. The last entry counts. Windows ignores letter case.
func Value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && IsNamed(key, name) {
			return value
		}
	}
	return ""
}

// IsNamed reports whether a variable has a name. Windows ignores letter case.
func IsNamed(key, name string) bool { return known(runtime.GOOS, key) == known(runtime.GOOS, name) }

// known returns the name by which a system, a [runtime.GOOS], knows a variable: on Windows Path is PATH.
func known(system, name string) string {
	if system == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
