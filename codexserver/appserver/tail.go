package appserver

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// tail is a writer that keeps the last lines of the app-server's standard error, without
// colours and secrets.
type tail struct {
	log *slog.Logger

	mu     sync.Mutex
	part   []byte // the beginning of a line
	partAt time.Time
	lines  []stderrLine
}

// stderrLine is a line and when it was written.
type stderrLine struct {
	text string
	at   time.Time
}

const (
	tailLines = 50
	tailWidth = 4 << 10
)

var (
	colours = lazyregexp.Regexp{Text: "\x1b\\[[0-9;?]*[A-Za-z]"}
	secrets = lazyregexp.Regexp{Text: `(?i)\b(?:sk-[a-z0-9_-]{6,}|eyJ[a-z0-9_-]{8,}[a-z0-9_.-]*|(bearer)\s+[^\s"']+)`}
)

// redact replaces what looks like a key or a token.
func redact(s string) string { return secrets.Get().ReplaceAllString(s, "[redacted]") }

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
	t.part, t.partAt = append(t.part, b...), time.Now()
	return n, nil
}

func (t *tail) line(b []byte) {
	s := strings.TrimSpace(colours.Get().ReplaceAllString(string(b[:min(len(b), tailWidth)]), ""))
	if s == "" {
		return
	}
	s = redact(strings.ToValidUTF8(s, "\uFFFD"))
	t.log.Debug("codex: stderr", "line", s)
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, stderrLine{s, time.Now()})
}

// lastWords matches the first line of the reason why a program ends: an error of main, an
// error of the command line, or a panic.
var lastWords = lazyregexp.Regexp{Text: `^(?:Error|error|fatal):|panicked at `}

// lastMoment is how long before the end the reason may be written. Older lines are about
// something else.
const lastMoment = 5 * time.Second

// last returns what the app-server wrote about its end at that time, or "". It leaves out
// other lines, which may come from any program that the app-server started.
func (t *tail) last(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if len(t.part) > 0 {
		lines = append(lines[:len(lines):len(lines)], stderrLine{redact(string(t.part)), t.partAt})
	}
	for i := len(lines) - 1; i >= 0 && at.Sub(lines[i].at) <= lastMoment; i-- {
		if !lastWords.Get().MatchString(lines[i].text) {
			continue
		}
		var words []string
		for _, line := range lines[i:min(len(lines), i+5)] {
			words = append(words, line.text)
		}
		return strings.Join(words, " ")
	}
	return ""
}
