// Package program holds what the programs of this module share: the signals that end them, their
// version, and their log.
package program

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"
)

// EndingSignals returns the signals that end a program in an orderly way: SIGTERM, os.Interrupt and
// others. Of the latter those that are ignored stay ignored, as nohup requires.
func EndingSignals(others ...os.Signal) []os.Signal {
	ending := []os.Signal{syscall.SIGTERM}
	for _, sig := range append(others, os.Interrupt) {
		if !signal.Ignored(sig) {
			ending = append(ending, sig)
		}
	}
	return ending
}

// SurviveBrokenPipes makes a write to a pipe without a reader return an error instead of
// ending the program. It receives SIGPIPE rather than ignoring it, since commands inherit
// ignored signals.
func SurviveBrokenPipes() (stop func()) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGPIPE)
	return func() { signal.Stop(received) }
}

// Version returns the module's version that the build recorded, without the v: a tag, the
// pseudo-version of a commit between tags, or "dev" without a record, as with go run.
// "+dirty" marks uncommitted changes.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return version(info)
}

func version(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// Build returns what a bug report needs besides the version: the commit if the build recorded it, the Go
// release and the system.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return build(info)
}

func build(info *debug.BuildInfo) string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				parts = append([]string{s.Value[:min(12, len(s.Value))]}, parts...)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// Logger returns a logger that writes lines of a format, text or json, which have no character that a
// terminal would not show.
func Logger(w io.Writer, format string, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(visible{w}, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// visible writes lines of JSON. The handler of JSON escapes only the characters below the space.
type visible struct{ io.Writer }

func (v visible) Write(line []byte) (int, error) {
	if _, err := io.WriteString(v.Writer, Line(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Line returns JSON as one line. It writes characters that a terminal could interpret as
// JSON escapes, which mean the same.
func Line(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r == '\n' || r == '\r' || r == '\t': // only between tokens: strings in JSON have none
		case r < 0x7f || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}
