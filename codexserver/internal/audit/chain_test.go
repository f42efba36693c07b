package audit_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/google/go-cmp/cmp"
)

// write writes decisions, each with an effect, to a record.
func write(t *testing.T, l *audit.Log, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		for _, line := range effect(fmt.Sprint(i)) {
			if _, err := l.Write(line); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// effect returns the lines of a command.
func effect(id string) [][]byte {
	exit := 0
	var all [][]byte
	for _, l := range []audit.Line{
		{Thread: "t", Decision: "approved", By: "client", ID: "d" + id, Question: []byte(`{"type":"exec_approval_request","call_id":"c` + id + `","command":["touch","x"]}`)},
		{Thread: "t", Effect: audit.Begins, ID: "e" + id, DecidedBy: "d" + id, Command: []string{"touch", "x"}, Kind: "command"},
		{Thread: "t", Effect: audit.Ends, Of: "e" + id, Exit: &exit, Took: 3},
	} {
		l.Time = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
		text, err := l.Append(nil)
		if err != nil {
			panic(err)
		}
		all = append(all, append(text, '\n'))
	}
	return all
}

func open(t *testing.T, path string, most int64) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, most)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func verify(t *testing.T, path string, o *audit.Options) *audit.Report {
	t.Helper()
	r, err := audit.Verify(audit.Paths(path), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// made returns a record of two files by two servers at a time, and its lines as they are in each file.
func made(t *testing.T) (path string, files [2][][]byte) {
	path = filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("{\"time\":\"2026-01-01T00:00:00Z\",\"decision\":\"denied\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for w := range 2 {
		both.Go(func() {
			l := open(t, path, 12<<10)
			defer l.Close()
			write(t, l, w*1000, w*1000+7)
		})
	}
	both.Wait()
	for i, name := range []string{path + ".1", path} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = slices.Collect(bytes.Lines(text))
	}
	return path, files
}

// TestChain checks that every change of a record is found at its place: of a byte, of lines and of files.
func TestChain(t *testing.T) {
	t.Parallel()
	path, files := made(t)
	whole := verify(t, path, nil)
	if len(whole.Faults) > 0 || whole.Lines != 42 || whole.Plain != 1 || whole.First != 1 || whole.Head.N != 42 || len(whole.Unfinished) > 0 {
		t.Fatalf("%+v", whole)
	}
	if r := verify(t, path, &audit.Options{Head: whole.Head}); len(r.Faults) > 0 {
		t.Error(r.Faults)
	}
	save := func(files [2][][]byte) {
		for i, name := range []string{path + ".1", path} {
			if err := os.WriteFile(name, bytes.Join(files[i], nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied := func() (c [2][][]byte) {
		for i := range files {
			for _, line := range files[i] {
				c[i] = append(c[i], bytes.Clone(line))
			}
		}
		return c
	}
	chained := func(file int) int { return 1 - file } // the first line of the first file is an old one
	names := [2]string{path + ".1", path}
	check := func(what string, changed [2][][]byte, file, line int) {
		t.Helper()
		save(changed)
		r := verify(t, path, nil)
		if len(r.Faults) == 0 {
			t.Errorf("%s: nothing was found", what)
			return
		}
		f := r.Faults[0]
		if f.File != names[file] || f.Line != line {
			t.Errorf("%s: found %v, want it at %s:%d", what, f, names[file], line)
		}
		if len(r.Faults) > 2 && line > 1 {
			t.Errorf("%s: one change has %d faults: %v", what, len(r.Faults), r.Faults)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 4
	for file := range files {
		for i := chained(file); i < len(files[file]); i++ {
			last := file == 1 && i == len(files[file])-1
			for range rounds * 10 {
				changed := copied()
				line := changed[file][i]
				at := r.IntN(len(line))
				to := byte(r.IntN(256))
				if to == line[at] || to == '\n' {
					to = line[at] ^ 1
				}
				line[at] = to
				check(fmt.Sprintf("file %d, line %d, byte %d of %d is %q", file, i+1, at, len(line), to), changed, file, i+1)
			}
			if !last {
				changed := copied()
				changed[file] = slices.Delete(changed[file], i, i+1)
				f, at := file, i+1
				if i == len(files[file])-1 {
					f, at = 1, 1
				}
				check(fmt.Sprintf("file %d without line %d", file, i+1), changed, f, at)
			}
			for range rounds {
				if j := chained(file) + r.IntN(len(files[file])-chained(file)); j != i {
					changed := copied()
					changed[file][i], changed[file][j] = changed[file][j], changed[file][i]
					save(changed)
					if faults := verify(t, path, nil).Faults; len(faults) == 0 || faults[0].Line != min(i, j)+1 {
						t.Errorf("lines %d and %d exchanged: %v", i+1, j+1, faults)
					}
					changed = copied()
					changed[file] = slices.Insert(changed[file], i, files[file][j])
					save(changed)
					if faults := verify(t, path, nil).Faults; len(faults) == 0 || faults[0].Line < i+1 || faults[0].Line > i+2 {
						t.Errorf("line %d is also before line %d: %v", j+1, i+1, faults)
					}
				}
			}
			changed := copied()
			changed[file] = slices.Insert(changed[file], i+1, []byte("{}\n"))
			check(fmt.Sprintf("a line after line %d", i+1), changed, file, i+2)
		}
	}
	// Of files.
	check("files exchanged", [2][][]byte{files[1], files[0]}, 1, 1)
	check("the same file twice", [2][][]byte{files[0], files[0]}, 1, 1)
	// What a kept head shows.
	for cut := 1; cut <= len(files[1]); cut++ {
		changed := copied()
		changed[1] = changed[1][:len(changed[1])-cut]
		save(changed)
		if r := verify(t, path, nil); len(r.Faults) > 0 {
			t.Errorf("cut by %d: %v", cut, r.Faults)
		}
		if faults := verify(t, path, &audit.Options{Head: whole.Head}).Faults; len(faults) != 1 || faults[0].Line != 0 || !strings.Contains(faults[0].Why, "cut") {
			t.Errorf("cut by %d, with a head: %v", cut, faults)
		}
	}
	save(files)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if faults := verify(t, path, &audit.Options{Head: whole.Head}).Faults; len(faults) != 1 {
		t.Errorf("without the last file: %v", faults)
	}
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, 0) // a chain that is made anew, with other content
	write(t, again, 5000, 5020)
	_ = again.Close()
	if faults := verify(t, path, nil).Faults; len(faults) > 0 {
		t.Error(faults)
	}
	if faults := verify(t, path, &audit.Options{Head: whole.Head}).Faults; len(faults) != 1 || faults[0].N != whole.Head.N {
		t.Errorf("a new chain: %v", faults)
	}
	save(files)
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, path, nil); len(r.Faults) > 0 || r.First == 1 {
		t.Errorf("without the first file: %+v", r)
	}
}

// TestTorn checks what a server leaves that is killed while it writes: each beginning of its last line. It
// verifies, and the next server continues.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, 0)
	write(t, l, 0, 2)
	_ = l.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	for size := from; size < len(text); size++ {
		if err := os.WriteFile(path, text[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, path, nil); len(r.Faults) > 0 || r.Cut != (size > from) {
			t.Fatalf("%d bytes: %+v", size-from, r)
		}
		l := open(t, path, 0)
		write(t, l, 2, 3)
		_ = l.Close()
		r := verify(t, path, nil)
		if len(r.Faults) > 0 || len(r.Unfinished) > 0 || r.Cut {
			t.Fatalf("%d bytes, continued: %+v", size-from, r)
		}
		if size > from+1 && size < len(text)-1 { // the part is protected, too
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			now[from+1] ^= 1
			if err := os.WriteFile(path, now, 0o600); err != nil {
				t.Fatal(err)
			}
			if faults := verify(t, path, nil).Faults; len(faults) == 0 || faults[0].Line != 6 {
				t.Fatalf("%d bytes, one changed: %v", size-from, faults)
			}
		}
	}
}

// TestChangedEnd changes a byte of a last line that lacks only its end. The next server does not link its line to
// the hash that the changed line claims: it notes the line as a part that another server left.
func TestChangedEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, 0)
	write(t, l, 0, 1)
	_ = l.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole = whole[:len(whole)-1]
	for _, changed := range []bool{false, true} {
		text := bytes.Clone(whole)
		if changed {
			text[bytes.LastIndexByte(text, '\n')+len(`{"effect":"ends","time":"2`)] ^= 1
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, path, 0)
		write(t, l, 1, 2)
		_ = l.Close()
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		next, err := audit.Parse(slices.Collect(bytes.Lines(now))[3], false)
		if err != nil || next.Chain == nil {
			t.Fatalf("%+v, %v", next, err)
		}
		want := audit.Link{N: 4, Writer: next.Chain.Writer, Prev: string(whole[len(whole)-66 : len(whole)-2])}
		if changed {
			last := bytes.LastIndexByte(text, '\n') + 1
			before, err := audit.Parse(text[bytes.LastIndexByte(text[:last-1], '\n')+1:last], false)
			if err != nil {
				t.Fatal(err)
			}
			want = audit.Link{N: 3, Writer: next.Chain.Writer, Open: 1, Prev: before.Hash, Torn: fmt.Sprintf("%x", sha256.Sum256(text[last:]))}
		}
		if diff := cmp.Diff(want, *next.Chain); diff != "" {
			t.Errorf("changed: %t: (-want +got):\n%s", changed, diff)
		}
		if faults := verify(t, path, nil).Faults; (len(faults) > 0) != changed {
			t.Errorf("changed: %t: %v", changed, faults)
		}
	}
}

// TestMeaning checks that a chain is refused whose records contradict each other.
func TestMeaning(t *testing.T) {
	d, b, e := string(effect("1")[0]), string(effect("1")[1]), string(effect("1")[2])
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"whole", []string{d, b, e}, ""},
		{"nobody was asked", []string{strings.Replace(b, `"decidedBy":"d1",`, "", 1), e}, ""},
		{"without a decision", []string{b, e}, "record 1: there is no decision d1 that allows it"},
		{"after a denial", []string{strings.Replace(d, "approved", "denied", 1), b, e}, "record 2: the decision d1 does not allow it, or has allowed something else"},
		{"one decision for two", []string{d, b, e, strings.Replace(b, `"e1"`, `"e2"`, 1)}, "record 4: the decision d1 does not allow it, or has allowed something else"},
		{"two decisions with one id", []string{d, d}, "record 2: its id is that of another record"},
		{"two ends", []string{d, b, e, e}, "record 4: it ends what has not begun, or has ended"},
		{"no beginning", []string{d, e}, "record 2: it ends what has not begun, or has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			l := open(t, path, 0)
			for _, line := range tt.lines {
				if _, err := l.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			var got strings.Builder
			for _, f := range verify(t, path, nil).Faults {
				_, words, _ := strings.Cut(f.String(), ": ")
				got.WriteString(words)
			}
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Error(diff)
			}
			_ = l.Close()
		})
	}
}

// TestChainLoose has a server stop while it has the lock, after it has read the end and before it writes. What others
// write then, and what it writes at last, is in its place.
func TestChainLoose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	read := func() []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	l := open(t, path, 0)
	write(t, l, 0, 2)
	before := read()
	if _, err := l.Write(effect("late")[0]); err != nil {
		t.Fatal(err)
	}
	late := read()[len(before):]
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(path)
	if err == nil {
		err = safefile.Lock(held)
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, 10, 12)
	if err := os.WriteFile(path, append(read(), late...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, l, 20, 22)
	if r := verify(t, path, nil); len(r.Faults) > 0 || r.Lines != 19 || len(r.Unfinished) > 0 {
		t.Errorf("%v, %d lines", r.Faults, r.Lines)
	}
	all := slices.Collect(bytes.Lines(read()))
	for i := range all { // what is lost or moved is found all the same
		lost := slices.Delete(slices.Clone(all), i, i+1)
		moved := slices.Insert(slices.Clone(lost), min(i+3, len(lost)), all[i])
		for n, changed := range [][][]byte{lost, moved} {
			if err := os.WriteFile(path, bytes.Join(changed, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			// No line has the hash of the last one, or of the last one before the late one.
			hidden := i == len(all)-1 || i == 11
			if r := verify(t, path, nil); (len(r.Faults) == 0 && r.First == 1) != hidden {
				t.Errorf("line %d, moved: %t: found: %v", i, n == 1, r.Faults)
			}
		}
	}
}
