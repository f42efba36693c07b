package mcptool

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKeysAreBounded checks that the newest keys are kept, none for more than a day, and the file
// of a principal no longer than its keys.
func TestKeysAreBounded(t *testing.T) {
	ks := newKeys(t.TempDir(), nil)
	if err := ks.sweep(); err != nil {
		t.Error(err)
	}
	ann, bob := filepath.Join(ks.dir, "ann.json"), filepath.Join(ks.dir, "bob.json")
	now := time.Now()
	add := func(path string, all ...begun) {
		t.Helper()
		if err := ks.change(path, func(before []begun) ([]begun, error) { return append(before, all...), nil }); err != nil {
			t.Fatal(err)
		}
	}
	add(bob, begun{Key: "of bob", At: now})
	add(ann, begun{Key: "old", At: now.Add(-keyLife)})
	add(ann, begun{Key: "first", At: now})
	if all, err := ks.read(ann); err != nil || len(all) != 1 || find(all, "first") != 0 {
		t.Errorf("%v, %v", all, err)
	}
	var more []begun
	for n := range maxKeys {
		more = append(more, begun{Key: fmt.Sprint(n), At: now})
	}
	add(ann, more...)
	all, err := ks.read(ann)
	if err != nil || len(all) != maxKeys || find(all, "first") >= 0 || find(all, "0") != 0 {
		t.Errorf("%d keys, %v", len(all), err)
	}
	for _, path := range []string{ann, filepath.Join(ks.dir, keyLock)} {
		if err := os.Chtimes(path, time.Time{}, now.Add(-keyLife)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ks.sweep(); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(ks.dir, "*"))
	if err != nil || len(left) != 2 || left[0] != bob {
		t.Errorf("%v, %v", left, err)
	}
}

// TestKeyOfNoTurn frees a key whose turn was refused after it was written.
func TestKeyOfNoTurn(t *testing.T) {
	ks := newKeys(t.TempDir(), nil)
	call := func() *keyed {
		return &keyed{keys: ks, path: filepath.Join(ks.dir, "ann.json"), over: make(chan struct{}), entry: begun{Key: "k", Thread: "1", At: time.Now()}}
	}
	k, again := call(), call()
	if before, entry, err := ks.hold(k); before != nil || entry != nil || err != nil {
		t.Fatal(before, entry, err)
	}
	if err := ks.change(k.path, func(all []begun) ([]begun, error) { return append(all, k.entry), nil }); err != nil {
		t.Fatal(err)
	}
	if before, _, err := ks.hold(again); before != k || err != nil {
		t.Error("two calls hold the key", err)
	}
	k.leave()
	if before, entry, err := ks.hold(again); before != nil || entry != nil || err != nil {
		t.Error("the key is not free", before, entry, err)
	}
}
