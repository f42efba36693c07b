package repo

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// pack is a pack of git, whose objects are not compressed: two files for any number of objects. See
// gitformat-pack(5).
type pack struct {
	data    []byte
	objects map[string]inPack // by their hashes
}

// inPack is where the object of a pack is.
type inPack struct{ at, sum uint32 }

// packKind is the kind of an object in a pack.
type packKind byte

const (
	packTree packKind = 2
	packBlob packKind = 3
)

func newPack() *pack {
	return &pack{data: []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), objects: map[string]inPack{}}
}

// add adds an object and returns its hash.
func (k *pack) add(kind packKind, data string) [sha1.Size]byte {
	name := "blob"
	if kind == packTree {
		name = "tree"
	}
	id := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", name, len(data), data))
	if _, known := k.objects[string(id[:])]; known {
		return id
	}
	at := len(k.data)
	// The size, with four bits in the first byte and seven in each other, of which each but the last has
	// the highest bit.
	head, size := byte(kind)<<4|byte(len(data)&15), len(data)>>4
	for ; size > 0; size >>= 7 {
		k.data = append(k.data, head|0x80)
		head = byte(size & 0x7f)
	}
	k.data = append(k.data, head)
	k.data = appendStored(k.data, data)
	k.objects[string(id[:])] = inPack{uint32(at), crc32.ChecksumIEEE(k.data[at:])}
	return id
}

// appendStored appends data as zlib stores it; see RFC 1950 and 1951.
func appendStored(to []byte, data string) []byte {
	to = append(to, 0x78, 0x01)
	for left := data; ; {
		part := left[:min(len(left), 1<<16-1)]
		left = left[len(part):]
		last := byte(0)
		if left == "" {
			last = 1
		}
		to = append(to, last)
		to = binary.LittleEndian.AppendUint16(to, uint16(len(part)))
		to = binary.LittleEndian.AppendUint16(to, ^uint16(len(part)))
		to = append(to, part...)
		if last == 1 {
			return binary.BigEndian.AppendUint32(to, adler32.Checksum([]byte(data)))
		}
	}
}

// write writes the pack and its index to a folder. Nothing may be added afterwards.
func (k *pack) write(dir string) error {
	binary.BigEndian.PutUint32(k.data[8:], uint32(len(k.objects)))
	sum := sha1.Sum(k.data)
	ids := slices.Sorted(maps.Keys(k.objects))
	index := []byte("\xfftOc\x00\x00\x00\x02")
	upTo := 0
	for first := range 256 { // how many begin with this byte or a lower one
		for upTo < len(ids) && int(ids[upTo][0]) <= first {
			upTo++
		}
		index = binary.BigEndian.AppendUint32(index, uint32(upTo))
	}
	for _, id := range ids {
		index = append(index, id...)
	}
	for _, id := range ids {
		index = binary.BigEndian.AppendUint32(index, k.objects[id].sum)
	}
	for _, id := range ids {
		index = binary.BigEndian.AppendUint32(index, k.objects[id].at)
	}
	index = append(index, sum[:]...)
	whole := sha1.Sum(index)
	file := filepath.Join(dir, "pack-"+hex.EncodeToString(sum[:]))
	return errors.Join(os.WriteFile(file+".pack", append(k.data, sum[:]...), 0o600), os.WriteFile(file+".idx", append(index, whole[:]...), 0o600))
}
