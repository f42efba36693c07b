// Package filelock locks open files between processes. A lock ends when its file is closed
// or its process ends.
//
// [Lock] and [Share] never wait. On systems without such locks they return
// [errors.ErrUnsupported].
package filelock
