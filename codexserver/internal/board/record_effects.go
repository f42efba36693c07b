package board

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	maxRecordedFiles = 1000
	maxSummedFile    = 16 << 20  // bytes of a file
	maxSummed        = 128 << 20 // bytes of all files of a line
)

// effects are the effects of one thread that have begun, and the decisions that they use. The mutex of the board guards them.
type effects struct {
	decisions map[string]string // the ids of approvals, by call
	open      map[string]opened // by call
	acted     string            // the last turn with an effect
}

// opened is an effect without an end.
type opened struct {
	id    string
	files []string // that it changes
}

// keep keeps the decision about a call, for its effect.
func (b *Board) keep(r *approval.Request, d *approval.Decision, id string) {
	e, call := &b.effects, r.Call()
	if call == "" || id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !d.Decision.Approves() {
		delete(e.decisions, call)
		return
	}
	if e.decisions == nil {
		e.decisions = map[string]string{}
	}
	e.decisions[call] = id
}

// Note records an effect of a turn: the line that [turnlog.EffectOf] returns for an event, and the files that it changes.
// It must be called before others receive the event: an engine that reports a beginning before the effect then has
// it recorded before.
func (b *Board) Note(thread approval.Thread, turn string, line audit.Line, files []string) {
	if b.options.Record == nil || line.Effect == "" {
		return
	}
	line.Thread, line.Principal, line.Turn = thread.ID, thread.Principal, turn
	switch line.Effect {
	case audit.Begins:
		b.begin(line, files)
	case audit.Ends:
		b.finish(line)
	default:
		b.write(line)
	}
}

// begin records the beginning of a call.
func (b *Board) begin(line audit.Line, files []string) {
	e, call := &b.effects, line.Call
	b.mu.Lock()
	before, again := e.open[call]
	e.acted, line.DecidedBy = line.Turn, e.decisions[call]
	delete(e.decisions, call)
	delete(e.open, call)
	b.mu.Unlock()
	if again { // an engine that reports no end
		b.write(audit.Line{Effect: audit.Ends, Thread: line.Thread, Principal: line.Principal, Of: before.id, Words: "its end was not reported"})
	}
	id := b.write(line)
	if id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.open == nil {
		e.open = map[string]opened{}
	}
	e.open[call] = opened{id: id, files: files}
}

// finish records the end of a call.
func (b *Board) finish(line audit.Line) {
	b.mu.Lock()
	o, ok := b.effects.open[line.Call]
	delete(b.effects.open, line.Call)
	b.mu.Unlock()
	if !ok { // its beginning could not be recorded, or there was none
		return
	}
	line.Turn, line.Call, line.Of = "", "", o.id
	line.Files, line.MoreFile = filesNow(o.files)
	b.write(line)
}

// EndTurn records the end of what the turn has begun and not ended, and forgets approvals that were not
// used.
func (b *Board) EndTurn(thread approval.Thread) {
	b.mu.Lock()
	left := b.effects.open
	b.effects.open, b.effects.decisions = nil, nil
	b.mu.Unlock()
	for _, call := range slices.Sorted(maps.Keys(left)) {
		files, more := filesNow(left[call].files)
		b.write(audit.Line{
			Effect: audit.Ends, Thread: thread.ID, Principal: thread.Principal, Of: left[call].id, Files: files, MoreFile: more,
			Words: "the turn ended before the end was reported",
		})
	}
}

// Changed records what a turn has changed, with the diff. A turn without an effect has changed nothing.
func (b *Board) Changed(thread approval.Thread, turn string, files []audit.File, diff string) {
	b.mu.Lock()
	acted := b.effects.acted == turn
	b.mu.Unlock()
	if b.options.Record == nil || len(files) == 0 || !acted {
		return
	}
	line := audit.Line{Effect: audit.Changed, Thread: thread.ID, Principal: thread.Principal, Turn: turn, Diff: diff}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	line.Files, line.MoreFile = filesNow(paths)
	for i := range line.Files {
		line.Files[i].Kind = files[i].Kind
	}
	b.write(line)
}

// write records a line about an effect, and returns its id. The next line says if that fails.
func (b *Board) write(line audit.Line) (id string) {
	err := guard(b.log, "Record", func() (err error) {
		id, err = b.options.Record.write(line)
		return err
	})
	if err != nil {
		b.log.Warn("effect not recorded", "effect", string(line.Effect), "thread", line.Thread, "error", err)
	}
	return id
}

// filesNow returns the files as they are, and how many are not listed.
func filesNow(paths []string) (files []audit.File, more int) {
	room := int64(maxSummed)
	for i, path := range paths {
		if i == maxRecordedFiles {
			return files, len(paths) - i
		}
		files = append(files, audit.File{Path: filepath.ToSlash(path), Sum: sumFile(path, &room)})
	}
	return files, 0
}

// sumFile returns the sum of a file, or why there is none. A link is not followed.
func sumFile(path string, room *int64) string {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "a link"
	}
	f, err := safefile.Open(path)
	var kind *safefile.KindError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.As(err, &kind):
		return "not a file"
	case err != nil:
		return "not readable"
	}
	defer f.Close()
	size := f.Info().Size()
	if size > maxSummedFile || size > *room {
		return "too large"
	}
	*room -= size
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxSummedFile+1)); err != nil || n > maxSummedFile {
		return "not readable"
	}
	return hex.EncodeToString(h.Sum(nil))
}

// covers returns what the approval of a command depends on.
func covers(a *approval.Request, d approval.Decision) *audit.Covers {
	q, ok := a.Event.(protocol.ExecApprovalRequest)
	if !ok {
		return nil
	}
	c := audit.Covers{
		Content: q.Content, Unasked: q.Unasked.Sum, Setup: q.Unasked.Setup, Program: q.Program, Judged: q.Judged,
		Confinable: q.Confinable, Replaceable: q.Replaceable, Placed: q.Placed, Human: q.Human, Confined: d.Confined, Kept: d.Unasked, Basis: q.Basis,
	}
	return &c
}
