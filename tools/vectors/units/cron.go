package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

type scheduleRow struct {
	Schedule string `json:"schedule"`
	Valid    bool   `json:"valid"`
	// Hits is empty for an invalid schedule.
	Hits []hit `json:"hits,omitempty"`
}

type hit struct {
	// Next is the first hit after After; absent when there is none within five years.
	After string `json:"after"`
	Next  string `json:"next,omitempty"`
	// Active says whether a budget window of the given length is open at that time.
	Duration string `json:"duration"`
	Active   bool   `json:"active"`
}

var handpickedSchedules = []string{
	"", " ", "*", "* * * *", "* * * * *", "* * * * * *", "@midnight", "@daily", "@annually", "@yearly", "@monthly", "@weekly",
	"@hourly", "@Daily", "@dailyX", "@daily x", " @daily ", "@", "@reboot", "@every 1h", "@every 1h30m", "@every 1500ms",
	"@every 1ms", "@every -5m", "@every 0", "@every", "@every ", "@every 1", "@every  1h", "@every\t1h", "@every 720h",
	"1/15 * * * *", "0 0 ? * MON", "0 0 * * 7", "0 0 * * 5-7", "0 0 L * *", "0 0 15W * *", "0 0 * * MON#1", "0 0 */2 * 1",
	"0 0 */1 * 1", "+5 * * * *", "1,,2 * * * *", ", * * * *", "* * * * ,", "* * , * ,", "0 0 31 2 *", "0 0 29 2 *",
	"0 0 30 2 1", "TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *", "0 0 * * tue-mon", "0 0 * * mon-tue", "0 0 * * MON-fri",
	"0 0 * Sep *", "0 0 * september *", "0 0 1 JAN-mar,DEC *", "0 0 * * sunday", "60 * * * *", "59 23 31 12 6", "* 24 * * *",
	"* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "-0 * * * *", "0--0 * * * *", "-5 * * * *", "5- * * * *",
	"1-2-3 * * * *", "*/0 * * * *", "*/-1 * * * *", "*/ * * * *", "*/+2 * * * *", "1/2/3 * * * *", "** * * * *", "*-9 0 * * *",
	"*-x-y/30 * * * *", "?/2 * * * *", "*/9223372036854775807 * * * *", "*/9223372036854775808 * * * *",
	"99999999999999999999 * * * *", "0 0 1,15 * 3", "0 0 13 * 5", "0 0 *,13 * 5", "0 0 1-31 * 5", "30 6 * * SUN",
	"0 9 * * 1-5", "0 9-17/2 * * *", "15,45 */6 1 */3 *", "\t0  0\u00a0* *\n*", "0\u30000 * * *", "0 0 31 4,6,9,11 *",
	"0 0 29 feb mon", "1.5 * * * *", "a * * * *", "0 0 * * * #",
}

func randomField(r *rand.Rand, min, max int, names ...string) string {
	value := func() string {
		if len(names) > 0 && r.Intn(3) == 0 {
			return pick(r, strings.ToUpper, strings.ToLower, strings.ToTitle)(pick(r, names...))
		}
		return fmt.Sprint(min + r.Intn(max-min+1))
	}
	var parts []string
	for range pick(r, 1, 1, 1, 2, 3) {
		part := pick(r, "*", "*", "?", value(), value(), value())
		if r.Intn(4) == 0 {
			low := r.Intn(max - min + 1)
			part = fmt.Sprintf("%d-%d", min+low, min+low+r.Intn(max-min-low+1))
		}
		if r.Intn(4) == 0 {
			part += fmt.Sprintf("/%d", 1+r.Intn(max))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

func randomSchedule(r *rand.Rand) string {
	// Plain stars in most date fields, otherwise most schedules would hit almost daily.
	date := func(field string) string { return pick(r, "*", field) }
	text := strings.Join([]string{
		randomField(r, 0, 59),
		randomField(r, 0, 23),
		date(randomField(r, 1, 31)),
		date(randomField(r, 1, 12, "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
		date(randomField(r, 0, 6, "sun", "mon", "tue", "wed", "thu", "fri", "sat")),
	}, " ")
	if r.Intn(6) == 0 {
		text = scramble(r, text, "0123456789*?/-,+ @amn")
	}
	return text
}

func schedules(r *rand.Rand) []scheduleRow {
	texts := append([]string{}, handpickedSchedules...)
	for range 1200 {
		texts = append(texts, randomSchedule(r))
	}
	from := time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	to := time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	var rows []scheduleRow
	for _, text := range texts {
		row := scheduleRow{Schedule: text}
		// The prefix is the one Karpenter puts in front.
		schedule, err := cron.ParseStandard("TZ=UTC " + text)
		if err == nil {
			row.Valid = true
			for range 3 {
				nanos := pick(r, 0, 0, 1, 999_999_999, r.Int63n(1_000_000_000))
				after := time.Unix(from+r.Int63n(to-from), nanos).UTC()
				// Half of the times lie right at a hit.
				if next := schedule.Next(after); !next.IsZero() && r.Intn(2) == 0 {
					after = next.Add(pick(r, 0, -1, 1, -time.Second))
				}
				row.Hits = append(row.Hits, hitAfter(r, schedule, after))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func hitAfter(r *rand.Rand, schedule cron.Schedule, after time.Time) hit {
	duration := pick(r, time.Minute, 10*time.Minute, time.Hour, 8*time.Hour, 48*time.Hour, 720*time.Hour)
	row := hit{After: after.Format(time.RFC3339Nano), Duration: duration.String()}
	if next := schedule.Next(after); !next.IsZero() {
		row.Next = next.Format(time.RFC3339Nano)
	}
	row.Active = !schedule.Next(after.Add(-duration)).After(after)
	return row
}
