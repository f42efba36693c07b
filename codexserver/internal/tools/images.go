package tools

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Bounds of the images of a turn.
const (
	maxImages     = 10
	maxImage      = 20 << 20 // bytes of one
	maxImageBytes = 32 << 20 // of all: providers take requests of 50 MB
)

// imageURL returns a data URL of the image and its size in bytes, at most left. The image
// is a data URL or a path relative to cwd.
//
// The server reads the file instead of the engine, so that the checked content is sent.
// Commands in a sandbox may read every file but devices, so any file within the bounds may
// be read here.
func imageURL(
	cwd, image string, left int64, b admit.Bounds, withheld func(path string) error,
) (url string, n int64, err error) {
	var data []byte
	most := min(maxImage, left)
	switch scheme, _, _ := strings.Cut(image, ":"); {
	case image == "":
		return "", 0, errors.New("it is empty")
	case strings.EqualFold(scheme, "data"):
		data, err = dataOf(image, most)
	case strings.Contains(image, "://"):
		return "", 0, errors.New("the server fetches nothing from an address: want a path or a data URL")
	default:
		data, err = readImage(cwd, image, most, b, withheld)
	}
	var large *safefile.SizeError
	if errors.As(err, &large) {
		return "", 0, fmt.Errorf("it has more than %d bytes, or the images together more than %d", most, maxImageBytes)
	}
	if err != nil {
		return "", 0, err
	}
	kind := imageType(data)
	if kind == "" {
		return "", 0, errors.New("not an image: its content must be PNG, JPEG, GIF or WebP")
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), int64(len(data)), nil
}

// imageType returns the media type of an image by its first bytes, or "" for anything else. Package net/http knows
// it, too, and would be a part of every program that embeds the server.
func imageType(data []byte) string {
	for _, t := range []struct{ begin, media string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"},
		{"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
	} {
		if bytes.HasPrefix(data, []byte(t.begin)) {
			return t.media
		}
	}
	if len(data) >= 14 && string(data[:4]) == "RIFF" && string(data[8:14]) == "WEBPVP" {
		return "image/webp"
	}
	return ""
}

// dataOf decodes a data URL with base64. It ignores the media type.
func dataOf(url string, most int64) ([]byte, error) {
	head, text, ok := strings.Cut(url, ",")
	if !ok || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return nil, errors.New("want a data URL with base64, such as data:image/png;base64,…")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, errors.New("its base64 cannot be read")
	case int64(len(data)) > most:
		return nil, &safefile.SizeError{Path: "the data URL", Max: most}
	}
	return data, nil
}

// readImage reads a regular file, even if the path is changed meanwhile. The author of a repository may have put a
// symbolic link into cwd, to have another picture of the user sent. So links in cwd must not lead out of it.
func readImage(cwd, path string, most int64, b admit.Bounds, withheld func(path string) error) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	if err := paths.Near(path, cwd); err != nil {
		return nil, err
	}
	within := b
	if b == nil {
		if !paths.Below(path, cwd) {
			f, err := safefile.Open(path)
			if err != nil {
				return nil, err
			}
			return readOpen(f, most, withheld)
		}
		within = admit.Bounds{cwd}
	}
	real, folder, err := within.Resolve(path)
	if errors.Is(err, admit.ErrOutside) && b == nil {
		return nil, fmt.Errorf("%s leads out of the working folder", path)
	}
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(folder, real)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := safefile.OpenIn(root, rel, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readOpen(f, most, withheld)
}

// readOpen reads a file and closes it, unless its content is withheld, by whatever path it was opened.
func readOpen(f *safefile.File, most int64, withheld func(path string) error) (data []byte, err error) {
	if withheld != nil {
		err = withheld(f.Name())
	}
	if err == nil {
		data, err = f.ReadAll(most)
	}
	return data, errors.Join(err, f.Close())
}
