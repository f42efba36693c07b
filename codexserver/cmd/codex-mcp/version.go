package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version returns the module's version that the build recorded, without the v: a tag, the
// pseudo-version of a commit between tags, or "dev" without a record, as with go run.
// "+dirty" marks uncommitted changes.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// lastServer is the last version of Codex with mcp-server, which this program replaces.
const lastServer = "0.153.4"

// versionLine returns the version in one line, with what a bug report needs: the commit if
// the build recorded it, the Go release and the system. With the name codex the line
// begins with lastServer, since clients choose the server's command by the version of
// codex.
func versionLine(name string, info *debug.BuildInfo) string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				parts = append([]string{s.Value[:min(12, len(s.Value))]}, parts...)
			}
		}
	}
	if name == "codex" {
		return fmt.Sprintf("codex-cli %s (codex-mcp %s, %s)", lastServer, versionOf(info), strings.Join(parts, ", "))
	}
	return fmt.Sprintf("codex-mcp %s (%s)", versionOf(info), strings.Join(parts, ", "))
}
