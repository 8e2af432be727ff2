package shop;

import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** What users ask for. */
@RestController
public class Pages {
    private final Counts counts;

    Pages(Counts counts) {
        this.counts = counts;
    }

    @GetMapping("/login")
    ResponseEntity<String> login(@RequestParam String user) {
        return of(user, counts.begin(user));
    }

    @GetMapping("/count")
    ResponseEntity<String> count(@RequestParam String user) {
        return of(user, counts.raise(user));
    }

    @GetMapping("/read")
    ResponseEntity<String> read(@RequestParam String user) {
        return of(user, counts.of(user));
    }

    @GetMapping("/logout")
    String logout(@RequestParam String user) {
        counts.forget(user);
        return "bye";
    }

    private static ResponseEntity<String> of(String user, Integer count) {
        return count == null ? ResponseEntity.status(401).body("nobody") : ResponseEntity.ok(user + " " + count);
    }
}
