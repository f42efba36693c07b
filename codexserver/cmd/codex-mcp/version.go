package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is the module's as the build recorded it, without the v: a tag's,
// the pseudo-version of a commit between tags, or "dev" where nothing was
// recorded, as with go run. "+dirty" marks changes that were not committed.
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

// lastServer is the last Codex that had mcp-server, which this program stands for.
const lastServer = "0.153.4"

// versionLine is the version in one line, with what the report of a fault needs: the
// commit where the build knows it, the Go release and the system. Clients that
// start codex ask it for its version before, and choose the word for the server
// by it; as codex the program names the version that they know.
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
