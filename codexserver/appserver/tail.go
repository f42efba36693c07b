package appserver

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// tail keeps the last lines that the app-server wrote to its standard error,
// without colours and secrets. It is an io.Writer.
type tail struct {
	log *slog.Logger

	mu    sync.Mutex
	part  []byte // of a line without its end
	lines []string
}

const (
	tailLines = 50
	tailWidth = 4 << 10
)

var (
	colours = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	secrets = regexp.MustCompile(`(?i)\b(?:sk-[a-z0-9_-]{6,}|eyJ[a-z0-9_-]{8,}[a-z0-9_.-]*|(bearer)\s+[^\s"']+)`)
)

// redact takes out what looks like a key or a token.
func redact(s string) string { return secrets.ReplaceAllString(s, "[redacted]") }

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		t.line(append(t.part, b[:i]...))
		t.part, b = t.part[:0], b[i+1:]
	}
	if room := tailWidth - len(t.part); len(b) > room {
		b = b[:max(room, 0)]
	}
	t.part = append(t.part, b...)
	return n, nil
}

func (t *tail) line(b []byte) {
	s := strings.TrimSpace(colours.ReplaceAllString(string(b[:min(len(b), tailWidth)]), ""))
	if s == "" {
		return
	}
	s = redact(strings.ToValidUTF8(s, "\uFFFD"))
	t.log.Debug("codex: stderr", "line", s)
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, s)
}

// last gives what the app-server said about its end: the lines from its last
// "Error:" on, else its last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if len(t.part) > 0 {
		lines = append(lines[:len(lines):len(lines)], redact(string(t.part)))
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "Error:") {
			return strings.Join(lines[i:min(len(lines), i+5)], " ")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}
