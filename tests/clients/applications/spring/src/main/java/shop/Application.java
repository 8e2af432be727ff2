package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.cache.autoconfigure.RedisCacheManagerBuilderCustomizer;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/**
 * A shop in Spring Boot: what it counts is cached in Redis by `application.properties`, which is what docs/applications.md shows.
 * It tries the cache, prints what each step gave, and then serves users.
 */
@SpringBootApplication
@EnableCaching
public class Application {
    /** Otherwise nobody waits for what is written, and a user may read the count before. */
    @Bean
    RedisCacheManagerBuilderCustomizer waitsForWrites(RedisConnectionFactory redis) {
        return caches -> caches.cacheWriter(RedisCacheWriter.create(redis, writer -> writer.immediateWrites()));
    }

    public static void main(String[] arguments) {
        var context = SpringApplication.run(Application.class, arguments);
        context.getBean(Steps.class).all();
        System.out.println("ready");
    }
}
