package record

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A server that is killed leaves beginnings without ends. Beside the log it has a locked file with its id, see package
// claim, and its lines have the id. Another server that can lock the file appends the ends, and removes the file.
//
// A command can lock the file, too, as it can read it. While it does, nobody appends the ends, and a server cannot
// begin to lock its own; both are tried again, and a command ends with its turn. No command can unlock a file, or
// remove it, so a server that lives never looks like one that does not.

// unknownEnd are the words of an end that nobody saw: the command may have ended well before the server.
const unknownEnd = "unknown: the server ended"

// lives locks the file of this server, and ends what others have left. What fails is tried again.
func (l *Log) lives() {
	var err error // such as on a file system without locks; the next line tries again
	if l.alive, err = claim.New(l.file.Dir(), filepath.Base(l.file.Name())+claimMark+l.server, ""); err == nil {
		_ = l.endLeft()
	}
}

// dies unlocks and removes the file of this server, after it has ended what others have left. If this server could not
// write all lines, the file is left for the next one.
func (l *Log) dies() error {
	err := l.endLeft()
	if !l.failed.Load() {
		err = errors.Join(err, l.file.Dir().Remove(filepath.Base(l.file.Name())+claimMark+l.server))
	}
	return errors.Join(err, l.alive.Close())
}

// claimMark is between the name of the log and the id of a server.
const claimMark = ".server-"

// endLeft appends the ends that servers have left out which do not live.
func (l *Log) endLeft() error {
	dir, name := l.file.Dir(), filepath.Base(l.file.Name())
	files, err := fs.ReadDir(dir.FS(), ".")
	gone := map[string]*claim.Owner{}
	for _, f := range files {
		id, is := strings.CutPrefix(f.Name(), name+claimMark)
		if !is || !f.Type().IsRegular() || id == l.server {
			continue
		}
		if owner, _ := claim.Take(dir, f.Name()); owner != nil {
			gone[id] = owner
			defer owner.Close()
		}
	}
	if len(gone) == 0 {
		return err
	}
	open, err := unended(dir, name, func(server string) bool { return gone[server] != nil })
	var lines []byte
	for _, b := range open {
		line, _ := json.Marshal(&Line{ // it was parsed
			Event: Ends, Time: time.Now().UTC(), DecisionID: b.DecisionID, Server: b.Server,
			Thread: b.Thread, Turn: b.Turn, Call: b.Call, Principal: b.Principal, Outcome: Outcome{Words: unknownEnd},
		}, jsontext.AllowInvalidUTF8(true))
		lines = append(append(lines, line...), '\n')
	}
	if err == nil && len(lines) > 0 {
		_, err = l.file.Write(lines)
	}
	if err != nil {
		return err
	}
	for _, owner := range gone {
		err = errors.Join(err, dir.Remove(owner.Name()))
	}
	return err
}

// maxRead is how much of the end of a log is read, in bytes. It is larger than the files.
const maxRead = 64 << 20

// unended returns the beginnings in the log, and in the file that it was before, which have no end and are of one of
// the servers.
func unended(dir *os.Root, name string, of func(server string) bool) ([]Line, error) {
	// The servers write no more. So what replaces one of the files now has nothing of theirs, and one that is read
	// twice, as its name changes, has the same lines.
	var files []*safefile.File
	for _, name := range []string{name, name + ".1"} {
		f, err := safefile.OpenIn(dir, name, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files = append(files, f)
	}
	open := map[[3]string]Line{}
	for _, f := range slices.Backward(files) { // the older one first
		in := bufio.NewReader(io.NewSectionReader(f, max(0, f.Info().Size()-maxRead), maxRead))
		for {
			text, err := in.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			var l Line
			if json.Unmarshal(text, &l, jsontext.AllowInvalidUTF8(true)) != nil || !of(l.Server) {
				continue
			}
			switch call := [3]string{l.Server, l.Thread, l.Call}; l.Event {
			case Begins:
				open[call] = l
			case Ends:
				delete(open, call)
			}
		}
	}
	return slices.SortedFunc(maps.Values(open), func(a, b Line) int { return a.Time.Compare(b.Time) }), nil
}
