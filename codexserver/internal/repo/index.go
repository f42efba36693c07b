package repo

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxRead is the size of the largest index that is read here instead of by git, in bytes.
const maxRead = 256 << 20

// index is what an index says about its files, in git's order. Git prints it too, but takes
// much longer.
type index []indexed

// indexed is a file of an index. A file in conflict is in it several times.
type indexed struct {
	name string
	mode uint32
	// changed and nanos are when the inode had changed when git last compared the file, in
	// seconds since 1970, and size is the size then. Nanos or size is 0 if it is not known.
	changed, nanos, size uint32
	// modified and modifiedNanos are when the content had changed.
	modified, modifiedNanos uint32
	at                      uint32 // where it begins in the index's file
	// Git does not look whether a file has changed that is assumed not to have changed, or
	// that is not checked out.
	assumed, skipped bool
}

func (e *indexed) isModule() bool { return e.mode == 0o160000 }

// index reads the index of the private git folder.
func (p *private) index(ctx context.Context) (index, error) {
	for again := false; ; again = true {
		data, err := safefile.Read(filepath.Join(p.dir, "index"), maxRead)
		var size *safefile.SizeError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case errors.As(err, &size):
			return nil, fmt.Errorf("%w: its index has more than %d MiB", ErrLarge, maxRead>>20)
		case err != nil:
			return nil, err
		}
		if all, ok := parseIndex(string(data), p.hashSize()); ok {
			return all, nil
		}
		if again {
			return nil, errors.New("the index cannot be read")
		}
		// Git writes other forms of an index, such as one of two parts, in the simple form.
		if _, err := p.git(ctx, call{}, "update-index", "--no-split-index", "--index-version=2", "--force-write-index"); err != nil {
			return nil, err
		}
	}
}

// hashSize returns the size of the repository's hashes.
func (p *private) hashSize() int {
	if strings.EqualFold(p.settings["extensions.objectformat"], "sha256") {
		return 32
	}
	return 20
}

// Parts of an index, see gitformat-index.
const (
	indexHead    = 12 // before the files
	indexStat    = 40 // before the hash of a file
	flagAssumed  = 0x8000
	flagExtended = 0x4000
	flagSkipped  = 0x4000 // of the extended flags
)

// parseIndex reads an index of one part that lists every file. It reports false for others.
func parseIndex(data string, hash int) (all index, ok bool) {
	number := func(at int) uint32 { return binary.BigEndian.Uint32([]byte(data[at : at+4])) }
	if len(data) < indexHead+hash || data[:4] != "DIRC" || number(4) != 2 && number(4) != 3 {
		return nil, false
	}
	version, count := number(4), int64(number(8))
	end := len(data) - hash
	if count > int64(end/(indexStat+hash)) {
		return nil, false
	}
	all = make(index, 0, count)
	at := indexHead
	for range count {
		name := at + indexStat + hash + 2
		if name > end {
			return nil, false
		}
		flags := binary.BigEndian.Uint16([]byte(data[name-2 : name]))
		e := indexed{at: uint32(at), mode: number(at + 24), changed: number(at), nanos: number(at + 4), modified: number(at + 8), modifiedNanos: number(at + 12), size: number(at + 36), assumed: flags&flagAssumed != 0}
		if flags&flagExtended != 0 {
			if name += 2; version < 3 || name > end {
				return nil, false
			}
			e.skipped = binary.BigEndian.Uint16([]byte(data[name-2:name]))&flagSkipped != 0
		}
		length := strings.IndexByte(data[name:end], 0)
		if length <= 0 || e.mode == 0o040000 { // a folder stands for its files
			return nil, false
		}
		e.name = data[name : name+length]
		if len(all) > 0 && e.name < all[len(all)-1].name {
			return nil, false
		}
		all = append(all, e)
		at += (name + length - at + 8) / 8 * 8
	}
	for at+8 <= end { // the extensions
		kind, size := data[at:at+4], int64(number(at+4))
		if at += 8; size > int64(end-at) || kind == "link" || kind == "sdir" {
			return nil, false
		}
		at += int(size)
	}
	return all, at == end
}

// eachEntry calls f with where each file of an index begins, and returns where the last one ends.
func eachEntry(data string, all index, f func(at int, e *indexed)) int {
	at := indexHead
	for i := range all {
		name := at + indexStat + sha1.Size + 2
		if data[name-2]&(flagExtended>>8) != 0 {
			name += 2
		}
		f(at, &all[i])
		at += (name + len(all[i].name) - at + 8) / 8 * 8
	}
	return at
}

// cachedTree returns the tree of an index if git has noted it since its last change, else "". Git
// would use it, too.
func cachedTree(data string, all index) string {
	at, end := eachEntry(data, all, func(int, *indexed) {}), len(data)-sha1.Size
	for at+8 <= end {
		kind, size := data[at:at+4], int(binary.BigEndian.Uint32([]byte(data[at+4:at+8])))
		at += 8
		if kind != "TREE" {
			at += size
			continue
		}
		root := ""
		for left := data[at : at+size]; left != ""; {
			_, rest, _ := strings.Cut(left, "\x00")
			line, hash, ok := strings.Cut(rest, "\n")
			count, _, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(count)
			if !ok || err != nil || n < 0 || len(hash) < sha1.Size || root == "" && n != len(all) {
				return ""
			}
			if root == "" {
				root = hex.EncodeToString([]byte(hash[:sha1.Size]))
			}
			left = hash[sha1.Size:]
		}
		return root
	}
	return ""
}

// find returns where the files with a name, or below the folder of the name, begin.
func (x index) find(name string) int {
	return sort.Search(len(x), func(i int) bool { return x[i].name >= name })
}

// entry returns the file with a name, or nil.
func (x index) entry(name string) *indexed {
	if i := x.find(name); i < len(x) && x[i].name == name {
		return &x[i]
	}
	return nil
}

// below returns the files below a folder.
func (x index) below(dir string) index {
	from := x.find(dir + "/")
	return x[from : from+x[from:].find(dir+"0")] // the character after the slash
}
