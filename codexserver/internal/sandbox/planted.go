package sandbox

import (
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

// Planted returns the path of a program that a command in dir with the environment env would start,
// although commands may write it: it, or a link on the way to it, lies in one of the folders. The path is
// "" if there is none. Of a script of plain commands it returns the first.
func Planted(argv []string, dir string, env, folders []string) string {
	commands, _ := policy.Commands(argv)
	if len(argv) > 0 && policy.LooksLikeShell(argv[0]) {
		commands = append([][]string{argv[:1]}, commands...)
	}
	path := filepath.SplitList(value(env, "PATH"))
	for i, folder := range path {
		if !filepath.IsAbs(folder) { // a shell also searches there
			path[i] = filepath.Join(dir, folder)
		}
	}
	env = append(env[:len(env):len(env)], "PATH="+strings.Join(path, string(filepath.ListSeparator)))
	roots := policy.Folders(folders)
	for _, words := range commands {
		if path, err := proc.LookPath(words[0], dir, env); err == nil && policy.LeadsThrough(path, roots) {
			return path
		}
	}
	return ""
}
