// Package s3guard keeps a holder that has lost its lock from replacing objects
// in S3.
//
// A change goes through only if its fencing token is at least the newest that
// the guard has seen for that object, and is seen by that very change. A newer
// holder that has claimed or written an object can never have it moved back. A
// delete does not forget the token. Readers get one whole version, whatever is
// written meanwhile.
//
//	err := guard.Write(ctx, held.Holding(), "films/42.mp4", file, s3guard.About{})
//
//	films/42.mp4 ──▶ {"tokens": {"studio/films/42": 7}, "data": {"key": ".pawl/films/42.mp4/K3…"}}
//	                                                                        │
//	.pawl/films/42.mp4/K3…  ◀───────────────────────────────────────────────┘
//	.pawl/films/42.mp4/ZQ…   no pointer leads here: replaced, or never accepted
//
// The object under the caller's key is a pointer, a small JSON text that is
// replaced with If-Match (If-None-Match at first). The bytes are in data objects
// that are written once. [Guard.Get] follows the pointer. Other S3 clients see
// the JSON, and find the data by [Info.DataKey].
//
// # Why not less
//
// A token in the metadata of the object itself does not fence. If-Match compares
// ETags, and the ETag of an object does not cover its metadata: when a newer
// holder writes the bytes that were there already, the ETag stays, and the write
// of an older holder that had looked before passes. This is why the token is in
// the body of the pointer, beside a random ID: no pointer ever has the ETag of an
// earlier one. Nor does Object Lock fence. It keeps versions from being deleted,
// not newer ones from being put before them, by whomever.
//
// # What it rests on
//
// S3 keeps what it has answered to, and compares If-Match with the newest version.
// Servers that ignore If-Match will not do, nor will replicas: replication and
// Multi-Region Access Points copy the pointer late, so read and write where the
// bucket is. A bucket that is restored to an earlier version forgets tokens: let
// every holder acquire its lock anew and claim.
//
// The guard fences those who use it. Whoever may PutObject or DeleteObject under
// a guarded key can undo it: outside the data prefix, let the bucket's policy
// require s3:if-match or s3:if-none-match of writers, and let nobody delete but who
// prunes. Objects that were there before the guard are refused, not taken over.
//
// Holders and readers need s3:GetObject, and s3:ListBucket, without which S3
// calls a missing object forbidden; holders s3:PutObject and
// s3:AbortMultipartUpload too, and who sweeps or prunes s3:DeleteObject.
//
// # Leaving
//
// Tokens of another source start lower than those that were seen, and would be
// stale for ever: add the largest that [Guard.Seen] tells to each of them, or use
// new names of locks and [Guard.Reset] each object.
//
// # What is left behind
//
// [Guard.Sweep], run once a day, deletes the data objects that nothing leads to, and
// [Guard.Prune] the pointers of objects that were deleted long ago.
// A lifecycle rule cannot see pointers; use one for what Sweep does not see, the
// parts of uploads that were never finished and, in a bucket with versions, what
// has been replaced or swept:
//
//	{"Rules": [{
//	  "ID": "pawl", "Status": "Enabled", "Filter": {"Prefix": ""},
//	  "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2},
//	  "NoncurrentVersionExpiration": {"NoncurrentDays": 2},
//	  "Expiration": {"ExpiredObjectDeleteMarker": true}
//	}]}
//
// Only where every object is written again at least once a week, say, may a rule
// do Sweep's work: {"Filter": {"Prefix": ".pawl/"}, "Expiration": {"Days": 14}}.
package s3guard
