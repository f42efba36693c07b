package run

import (
	"path/filepath"
	"strings"
)

// LineShell returns the beginning of the argv that runs a line, with the first shell that the PATH of the environment has.
// A bash that Windows brings along runs in another system, with other paths. The system is a [runtime.GOOS].
func LineShell(system string, environ []string) []string {
	otherwise, shells := []string{"bash", "-lc"}, [][]string{{"bash", "-lc"}, {"sh", "-c"}}
	if system == "windows" {
		otherwise = []string{"cmd", "/c"}
		shells = [][]string{{"pwsh", "-NoProfile", "-Command"}, {"powershell", "-NoProfile", "-Command"},
			{"bash", "-lc"}}
	}
	for _, shell := range shells {
		path, err := LookPath(shell[0], "/", environ)
		folder := strings.ToLower(filepath.Base(filepath.Dir(path)))
		if err == nil && (system != "windows" || shell[0] != "bash" || folder != "system32" &&
			folder != "windowsapps") {
			return shell
		}
	}
	return otherwise
}
